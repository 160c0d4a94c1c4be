package admin

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// readyWithin is how long the database may take to answer for the server to be ready.
const readyWithin = 5 * time.Second

// health says that the process answers.
func (s *Server) health(q *request) error { return q.plain(http.StatusOK, "ok\n") }

// ready says that the database answers and has the right schema.
func (s *Server) ready(q *request) error {
	ctx, cancel := context.WithTimeout(q.r.Context(), readyWithin)
	defer cancel()
	answered := make(chan error, 1)
	go func() { answered <- s.Store.Ping(ctx) }() // it may stay behind: a statement is given some seconds more to end well
	var err error
	select {
	case err = <-answered:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		s.Log.Warn("not ready", "err", err)
		return q.plain(http.StatusServiceUnavailable, "database not ready\n")
	}
	return q.plain(http.StatusOK, "ready\n")
}

func (q *request) plain(status int, text string) error {
	q.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	q.w.WriteHeader(status)
	q.sent = true
	_, _ = io.WriteString(q.w, text) // who has gone needs no answer
	return nil
}

func (s *Server) metricsPage(q *request) error {
	q.sent = true
	promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{}).ServeHTTP(q.w, q.r)
	return nil
}

// figures are the server's metrics, the cluster's beside them. No host, run, tenant or user is ever a label.
type figures struct {
	registry *prometheus.Registry
	answers  *prometheus.CounterVec
	signIns  *prometheus.CounterVec
}

func newFigures(s *Server) *figures {
	const ns = "deepcrawl"
	f := &figures{
		registry: prometheus.NewRegistry(),
		answers: prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: ns, Subsystem: "serve", Name: "answers_total", Help: "Requests answered, by status."},
			[]string{"status"}),
		signIns: prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: ns, Subsystem: "serve", Name: "sign_ins_total", Help: "Attempts to sign in, by outcome."},
			[]string{"outcome"}),
	}
	watching := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: ns, Subsystem: "serve", Name: "watching", Help: "Live streams open."},
		func() float64 { return float64(len(s.watchers)) })
	build := prometheus.NewGauge(prometheus.GaugeOpts{Namespace: ns, Name: "build_info", Help: "1, with the version as a label.",
		ConstLabels: prometheus.Labels{"version": s.Version}})
	build.Set(1)
	f.registry.MustRegister(f.answers, f.signIns, watching, build, &clusterFigures{s},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return f
}

// clusterFigures are read when they are asked for.
type clusterFigures struct{ s *Server }

// Describe implements prometheus.Collector: none is described beforehand, since all are missing while the database is.
func (*clusterFigures) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c *clusterFigures) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(c.s.ctx, readyWithin)
	defer cancel()
	p, err := c.s.look(ctx)
	if err != nil {
		c.s.Log.Warn("metrics without the cluster's", "err", err)
		return
	}
	for _, g := range []struct {
		name, help string
		value      int
	}{
		{"nodes", "Live nodes.", len(p.Nodes)},
		{"workers", "Workers of live nodes.", p.Workers},
		{"runs_active", "Runs being worked on (of the oldest unfinished ones).", len(p.Active)},
		{"runs_waiting", "Runs that wait (of the oldest unfinished ones).", len(p.Waiting)},
		{"slots_used", "Slots of hosts in use.", p.Used},
		{"hosts_blocked", "Hosts banned, paused or left alone.", len(p.Blocked)},
		{"warnings", "Warnings of cluster status.", len(p.Warnings)},
	} {
		d := prometheus.NewDesc("deepcrawl_cluster_"+g.name, g.help, nil, nil)
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(g.value))
	}
}

// counted notes the status of an answer.
type counted struct {
	http.ResponseWriter
	status int
}

func (c *counted) WriteHeader(status int) {
	c.status = status
	c.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (c *counted) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (f *figures) count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &counted{w, http.StatusOK}
		defer func() { f.answers.WithLabelValues(strconv.Itoa(c.status)).Inc() }()
		next.ServeHTTP(c, r)
	})
}
