//go:build tools

// Package monitoring pins the programs that share client-go 0.35: Prometheus, promtool and CoreDNS.
package monitoring

import (
	_ "github.com/prometheus/prometheus/cmd/prometheus"
	_ "github.com/prometheus/prometheus/cmd/promtool"
)
