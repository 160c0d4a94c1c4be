package admin

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"deepcrawl/storage"
)

// live streams parts of a page, rendered anew every few seconds, as server-sent events (HTML Living Standard section 9.2) that are
// named like the part; a part is sent when it has changed. next returns the parts' page and whether it is the last.
func (q *request) live(parts []string, next func(context.Context) (page any, last bool, err error)) error {
	return q.liveEvery(q.s.Every, parts, next)
}

// writeFor ends a stream whose reader takes nothing any more.
const writeFor = 20 * time.Second

func (q *request) liveEvery(every time.Duration, parts []string, next func(context.Context) (page any, last bool, err error)) error {
	s := q.s
	if !s.watching.begin(q.user.Name) {
		return errBusy
	}
	defer s.watching.end(q.user.Name)
	select {
	case s.watchers <- struct{}{}:
		defer func() { <-s.watchers }()
	default:
		return errBusy
	}
	ctx, cancel := context.WithCancel(q.r.Context())
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	page, last, err := next(ctx)
	if err != nil {
		return err
	}
	out := http.NewResponseController(q.w)
	h := q.w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("X-Accel-Buffering", "no") // nginx would hold events back
	q.sent = true
	tick := time.NewTicker(every)
	defer tick.Stop()
	before := make([][]byte, len(parts))
	for {
		events, err := s.changed(parts, before, page)
		if err != nil {
			s.Log.Error("render", "parts", parts, "err", err)
			return nil
		}
		// A connection without a deadline to set is one of a test.
		if err := out.SetWriteDeadline(s.Now().Add(writeFor)); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return nil
		}
		if last {
			events = append(events, event("end", nil)...)
		}
		if len(events) == 0 {
			events = []byte(": still\n\n")
		}
		if _, err = q.w.Write(events); err != nil || out.Flush() != nil || last {
			return nil // who watched has gone, or has all there is
		}
		for again := true; again; {
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
			if gone, err := q.gone(ctx); gone {
				farewell(q.w, out, parts[0], say("error.ended")+` <a href="/sign-in">`+say("signin.title")+"</a>")
				return nil
			} else if err != nil {
				continue // the database is away for a moment: what is shown stays, the browser keeps listening
			}
			page, last, err = next(ctx)
			if errors.Is(err, storage.ErrNotFound) {
				farewell(q.w, out, parts[0], say("error.gone"))
				return nil
			}
			again = err != nil
		}
	}
}

// watching counts the live streams of each user, so that one cannot take those of all.
type watching struct {
	mu sync.Mutex
	by map[string]int
}

// maxOwn bounds the live streams of one user.
const maxOwn = 40

func (w *watching) begin(user string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.by == nil {
		w.by = map[string]int{}
	}
	if w.by[user] >= maxOwn {
		return false
	}
	w.by[user]++
	return true
}

func (w *watching) end(user string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.by[user]--; w.by[user] <= 0 {
		delete(w.by, user)
	}
}

// farewell puts a last word into a part, so that the browser does not come back; who has left needs none.
func farewell(w http.ResponseWriter, out *http.ResponseController, part, html string) {
	if _, err := w.Write(append(event(part, []byte(`<p class="note">`+html+"</p>")), event("end", nil)...)); err == nil {
		_ = out.Flush()
	}
}

// changed renders the parts and returns events of those that are other than before.
func (s *Server) changed(parts []string, before [][]byte, page any) (events []byte, err error) {
	for i, part := range parts {
		html, err := s.pages.part(part, page)
		if err != nil {
			return nil, err
		}
		if !bytes.Equal(html, before[i]) {
			before[i] = html
			events = append(events, event(part, html)...)
		}
	}
	return events, nil
}

// gone says whether the session or token has ended since.
func (q *request) gone(ctx context.Context) (bool, error) {
	again := request{s: q.s, w: q.w, r: q.r.WithContext(ctx)}
	err := again.authenticate()
	if errors.Is(err, errSignIn) || err == nil && again.user != q.user {
		return true, nil
	}
	return false, err
}

// event is one server-sent event; each line of its data is a field.
func event(name string, data []byte) []byte {
	var b bytes.Buffer
	if name != "" {
		b.WriteString("event: " + name + "\n")
	}
	for line := range bytes.Lines(data) {
		b.WriteString("data: ")
		b.Write(bytes.TrimRight(bytes.ReplaceAll(line, []byte("\r"), nil), "\n"))
		b.WriteByte('\n')
	}
	if len(data) == 0 {
		b.WriteString("data: .\n")
	}
	b.WriteByte('\n')
	return b.Bytes()
}
