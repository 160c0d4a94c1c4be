package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Listener is a site bound to its addresses.
type Listener struct {
	site *Site
	port int
	ls   []net.Listener
}

// Listen binds the site's hosts, 127.0.0.1 to 127.0.0.N, to one port, so that
// the addresses are known before Run. addr is "127.0.0.1:PORT" or ":PORT"; port 0 chooses a free one.
func (s *Site) Listen(addr string) (*Listener, error) {
	name, portText, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("site address %q: %w", addr, err)
	}
	if name != "" && name != hostName(0) {
		return nil, fmt.Errorf("site address %q: the first host is %s", addr, hostName(0))
	}
	port, err := strconv.Atoi(portText)
	if err != nil {
		return nil, fmt.Errorf("site address %q: the port is not a number", addr)
	}
	// A port that is free on the first host may be taken on another; a port
	// the caller did not choose is then tried anew.
	for try := 0; ; try++ {
		l, err := s.listen(port)
		if err == nil || port != 0 || try == 20 {
			return l, err
		}
	}
}

func (s *Site) listen(port int) (*Listener, error) {
	l := &Listener{site: s, port: port}
	for n := range s.cfg.Hosts {
		ln, err := net.Listen("tcp4", net.JoinHostPort(hostName(n), strconv.Itoa(l.port)))
		if err != nil {
			l.close()
			return nil, fmt.Errorf("bind site: %w", err)
		}
		l.ls = append(l.ls, ln)
		l.port = ln.Addr().(*net.TCPAddr).Port
	}
	return l, nil
}

func (l *Listener) close() {
	for _, ln := range l.ls {
		_ = ln.Close() // nothing was accepted yet
	}
}

// Port all hosts listen on.
func (l *Listener) Port() int { return l.port }

// URLs are the home pages of the hosts, such as "http://127.0.0.1:8080/".
func (l *Listener) URLs() []string {
	urls := make([]string, len(l.ls))
	for n := range l.ls {
		urls[n] = "http://" + net.JoinHostPort(hostName(n), strconv.Itoa(l.port)) + "/"
	}
	return urls
}

// Run serves until ctx is done, then closes every connection, waits until the
// log of each request is complete, and returns nil. It returns an error when a
// listener fails.
func (l *Listener) Run(ctx context.Context) error {
	// open counts connections and, because a hijacked connection is no longer
	// the server's, the requests on them.
	var open sync.WaitGroup
	handler := l.site.Handler()
	srv := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			open.Add(1)
			defer open.Done()
			handler.ServeHTTP(w, r)
		}),
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				open.Add(1)
			case http.StateClosed, http.StateHijacked:
				open.Done()
			}
		},
		ReadHeaderTimeout: time.Minute,
	}
	errs := make(chan error, len(l.ls))
	for _, ln := range l.ls {
		go func() { errs <- srv.Serve(ln) }()
	}
	var err error
	pending := len(l.ls)
	select {
	case <-ctx.Done():
	case err = <-errs:
		pending--
	}
	_ = srv.Close() // its error repeats that of a listener
	for range pending {
		if e := <-errs; !errors.Is(e, http.ErrServerClosed) {
			err = errors.Join(err, e)
		}
	}
	open.Wait()
	if errors.Is(err, http.ErrServerClosed) || err == nil {
		return nil
	}
	return fmt.Errorf("serve site: %w", err)
}

// Serve is Listen and Run in one.
func (s *Site) Serve(ctx context.Context, addr string) error {
	l, err := s.Listen(addr)
	if err != nil {
		return err
	}
	return l.Run(ctx)
}
