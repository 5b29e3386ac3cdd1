{{- define "cuvil.name" -}}
{{- $name := ternary .Release.Name (printf "%s-cuvil" .Release.Name) (contains "cuvil" .Release.Name) }}
{{- $name | trunc 52 | trimSuffix "-" }}
{{- end }}

{{- define "cuvil.serviceAccount" -}}
{{- default (include "cuvil.name" .) .Values.serviceAccount.name }}
{{- end }}

{{- define "cuvil.selector" -}}
app.kubernetes.io/name: cuvil
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end }}

{{/* managed-by is Helm here: the operator's own label value marks what the operator made. */}}
{{- define "cuvil.labels" -}}
{{ include "cuvil.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}
