package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"deepcrawl/coord"
	"deepcrawl/crawl"
	"deepcrawl/internal/show"
	"deepcrawl/storage"
)

// Store is what the pages read and write.
type Store interface {
	storage.Store
	storage.Users
	storage.Timelines
}

// Operations are what commands do as well, with the same rules and words.
type Operations interface {
	ClusterOperations
	RunOperations
}

// ClusterOperations look at the cluster and steer it.
type ClusterOperations interface {
	// Cluster reads the cluster at this moment.
	Cluster(ctx context.Context) (show.Cluster, error)
	// Hosts lists hosts that are banned or paused.
	Hosts(ctx context.Context) ([]show.Host, error)
	// SteerHost does "ban", "unban" or "clear" to a host as a person writes it, and says what it came to.
	SteerHost(ctx context.Context, action, host, reason string) (said string, err error)
	// Coordinate begins to move coordination to the database, where it is kept then, or lets it go to Redis, as cluster coord does, and
	// says what it came to.
	Coordinate(ctx context.Context, to coord.Mode) (said string, err error)
	// HasRedis says whether there is a Redis that coordination may go to.
	HasRedis() bool
	// Check tries coordination for real, giving each line as it comes. It returns an error only where it could not be tried.
	Check(ctx context.Context, say func(show.CheckLine)) error
}

// RunOperations start and steer runs.
type RunOperations interface {
	// Start queues a run; a spec or tenant that is not allowed is a Mistake.
	Start(ctx context.Context, tenant string, spec crawl.Spec) (storage.Run, error)
	// SteerRun does "pause", "resume", "cancel" or "delete" and returns the run's state after it.
	SteerRun(ctx context.Context, action string, id storage.RunID) (state string, err error)
	// Waits puts into unfinished runs what they wait for and until when.
	Waits(ctx context.Context, runs []storage.Run) error
	// Export streams what was stored of a run.
	Export(ctx context.Context, run storage.Run, what, format string, w io.Writer) error
}

// Mistake is an error of the person who asked: one line that says what is allowed.
type Mistake struct{ Text string }

func (m *Mistake) Error() string { return m.Text }

func mistakef(format string, args ...any) error { return &Mistake{fmt.Sprintf(format, args...)} }

// Config of a Server. Store, Operations and Version are needed.
type Config struct {
	Store      Store
	Operations Operations
	Version    string
	Now        func() time.Time // nil: time.Now
	Log        *slog.Logger     // nil: none
	// Every is how often live figures are sent; 0: two seconds.
	Every time.Duration
}

// Server answers pages and API. Close ends what it has begun.
type Server struct {
	Config
	pages    *pages
	metrics  *figures
	throttle throttle
	hashing  chan struct{} // bounds the memory of password hashes
	watchers chan struct{} // bounds live streams
	watching watching
	looked   looked
	charts   charts
	checking checking
	handler  http.Handler

	ctx  context.Context
	stop context.CancelFunc
	work sync.WaitGroup
}

// Limits of what one process does at once.
const (
	maxHashing  = 2
	maxWatchers = 200
	maxBody     = 1 << 20
)

// New makes a server.
func New(c Config) (*Server, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Every <= 0 {
		c.Every = 2 * time.Second
	}
	p, err := parsePages()
	if err != nil {
		return nil, err
	}
	s := &Server{Config: c, pages: p, hashing: make(chan struct{}, maxHashing), watchers: make(chan struct{}, maxWatchers)}
	s.throttle.now = c.Now
	s.metrics = newFigures(s)
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.handler = s.routes()
	return s, nil
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Close ends live streams and a check under way, and waits for them.
func (s *Server) Close() {
	s.stop()
	s.work.Wait()
}

// drainFor is how long answers under way may still take when the server stops; exports are cut then.
const drainFor = 5 * time.Second

// Serve answers on l until ctx ends, then ends live streams, waits a little for other answers, and returns nil.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	// No ReadTimeout: it would also cut exports and live streams. Bodies have a deadline of their own (request.form).
	h := &http.Server{
		Handler: s, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug),
	}
	ended := make(chan error, 1)
	go func() { ended <- h.Serve(l) }()
	prune := time.NewTicker(time.Hour)
	defer prune.Stop()
	sample := time.NewTicker(sampleEvery)
	defer sample.Stop()
	for {
		select {
		case err := <-ended:
			s.Close()
			return fmt.Errorf("serve: %w", err)
		case <-prune.C:
			if err := s.Store.PruneSessions(ctx); err != nil {
				s.Log.Warn("prune sessions", "err", err)
			}
		case <-sample.C:
			s.sample(ctx)
		case <-ctx.Done():
			s.Close()
			drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainFor)
			defer cancel()
			if err := h.Shutdown(drain); errors.Is(err, context.DeadlineExceeded) {
				return h.Close()
			}
			return nil
		}
	}
}
