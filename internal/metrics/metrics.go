// Package metrics shows what a node does to Prometheus, with pprof beside it.
//
// Labels are few and fixed: no URL, host, run or tenant is ever one.
package metrics

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"deepcrawl/crawl"
	"deepcrawl/storage"
)

const namespace = "deepcrawl"

// Node collects the figures of one node. It is a crawl.Metrics.
type Node struct {
	registry *prometheus.Registry
	pages    *prometheus.CounterVec
	errors   *prometheus.CounterVec
	bytes    prometheus.Counter
	late     prometheus.Counter
	claimed  prometheus.Counter
	calls    *prometheus.HistogramVec
	slots    prometheus.Histogram
	dwell    prometheus.Histogram
}

var _ crawl.Metrics = (*Node)(nil)

// Source is the node whose figures are shown.
type Source interface {
	Stats() crawl.Stats
	Holding() (crawl.Holding, bool)
}

// New makes the collectors. source is asked at each scrape.
func New(version string, source func() Source) *Node {
	n := &Node{
		registry: prometheus.NewRegistry(),
		pages: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: "pages_total", Help: "Results committed, by what became of the URL (fetched, failed, excluded, delayed).",
		}, []string{"state"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: "errors_total", Help: "Results that are no plain fetched page, by reason.",
		}, []string{"reason"}),
		bytes: prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: "bytes_total", Help: "Decoded bytes of the bodies of committed results."}),
		late: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: namespace, Name: "late_writes_refused_total", Help: "Results refused because their claim was no longer the session's.",
		}),
		claimed: prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: "claimed_total", Help: "URLs claimed."}),
		calls: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Name: "store_call_seconds", Help: "Time of a call to the store that succeeded, by what it does (claim, finish).",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 15),
		}, []string{"op"}),
		slots: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: namespace, Name: "slot_wait_seconds", Help: "Time a request waited for a slot of its host or run, of those that waited.",
			Buckets: prometheus.ExponentialBuckets(0.005, 2, 15),
		}),
		dwell: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: namespace, Name: "dwell_seconds", Help: "Time a run without a worker waited for one.",
			Buckets: prometheus.ExponentialBuckets(0.05, 2, 14),
		}),
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: namespace, Name: "build_info", Help: "1, with the version as a label.", ConstLabels: prometheus.Labels{"version": version},
	})
	build.Set(1)
	n.registry.MustRegister(n.pages, n.errors, n.bytes, n.late, n.claimed, n.calls, n.slots, n.dwell, build, newGauges(source),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return n
}

// Page implements crawl.Metrics.
func (n *Node) Page(state storage.State, reason storage.Reason, bytes int64) {
	n.pages.WithLabelValues(state.String()).Inc()
	if reason != "" {
		n.errors.WithLabelValues(string(reason)).Inc()
	}
	n.bytes.Add(float64(bytes))
}

// LateRefused implements crawl.Metrics.
func (n *Node) LateRefused() { n.late.Inc() }

// Claimed implements crawl.Metrics.
func (n *Node) Claimed(urls int, d time.Duration) {
	n.claimed.Add(float64(urls))
	n.calls.WithLabelValues("claim").Observe(d.Seconds())
}

// Finished implements crawl.Metrics.
func (n *Node) Finished(_ int, d time.Duration) {
	n.calls.WithLabelValues("finish").Observe(d.Seconds())
}

// SlotWaited implements crawl.Metrics.
func (n *Node) SlotWaited(d time.Duration) { n.slots.Observe(d.Seconds()) }

// Dwelt implements crawl.Metrics.
func (n *Node) Dwelt(d time.Duration) { n.dwell.Observe(d.Seconds()) }

// Handler answers /metrics and, below /debug/pprof/, the profiles of the process.
func (n *Node) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(n.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}

// Server answers on one address until it is closed.
type Server struct {
	http *http.Server
	addr net.Addr
	done chan struct{}
}

// Listen begins to answer on addr (HOST:PORT; port 0 is any free one).
func (n *Node) Listen(addr string, log *slog.Logger) (*Server, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen for metrics: %w", err)
	}
	s := &Server{addr: l.Addr(), done: make(chan struct{}), http: &http.Server{Handler: n.Handler(), ReadHeaderTimeout: 10 * time.Second}}
	go func() {
		defer close(s.done)
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error("metrics end", "err", err)
		}
	}()
	return s, nil
}

// Addr is where it answers.
func (s *Server) Addr() net.Addr { return s.addr }

// Close ends requests under way and returns when all has stopped.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := s.http.Shutdown(ctx); err != nil { // a profile may take long
		if err := s.http.Close(); err != nil {
			return err
		}
	}
	<-s.done
	return nil
}
