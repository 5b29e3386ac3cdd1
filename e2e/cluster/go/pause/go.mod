module cuvil/e2e/cluster/pause

go 1.25.0
