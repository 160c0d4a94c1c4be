package admin

import (
	"encoding/hex"
	"net/http"
	"time"

	"deepcrawl/storage"
)

// lookFor is how long the URLs on a screen are claimed before others; pages say again what is on them while they are open.
const lookFor = 30 * time.Second

// maxLook bounds the URLs of one call.
const maxLook = 2 * pagesShown

// lookAt is told which unfinished URLs somebody has on the screen: those queued are claimed before others for a while. Only their order
// changes, so who may see a run may look at its URLs.
//
// Programs get how many are boosted. The list of pages gets its rows anew; the record of a page is loaded anew once it is finished.
func (s *Server) lookAt(q *request) error {
	r, err := q.run()
	if err != nil {
		return err
	}
	f, err := q.form()
	if err != nil {
		return err
	}
	var keys []storage.Key
	for _, text := range f["key"] {
		raw, err := hex.DecodeString(text)
		if err != nil || len(raw) != len(storage.Key{}) || len(keys) == maxLook {
			return mistakef("%s", say("error.keys", maxLook))
		}
		keys = append(keys, storage.Key(raw))
	}
	n := 0
	if !r.State.Terminal() {
		if n, err = s.Store.Boost(q.r.Context(), r.ID, keys, lookFor); err != nil {
			return err
		}
	}
	switch {
	case q.api:
		q.json(http.StatusOK, map[string]any{"run": r.ID, "boosted": n, "seconds": lookFor.Seconds()})
		return nil
	case f.Has("record"):
		return q.lookAtRecord(r, keys)
	case q.r.URL.Query().Get("q") != "":
		return q.nothing() // a search reads too much to be done again and again
	}
	p, err := q.pagesPage(r, q.r.URL.Query())
	if err != nil {
		return err
	}
	html, err := s.pages.part("pages-rows", p)
	if err != nil {
		return err
	}
	q.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	q.sent = true
	_, _ = q.w.Write(html) // who has gone needs no answer
	return nil
}

// lookAtRecord lets the browser load the record of a page anew once it has been finished.
func (q *request) lookAtRecord(r storage.Run, keys []storage.Key) error {
	for _, key := range keys {
		row, err := q.s.Store.PageByKey(q.r.Context(), r.ID, key)
		if err != nil {
			return err
		}
		if row.State.Terminal() {
			q.w.Header().Set("HX-Refresh", "true")
		}
	}
	return q.nothing()
}

func (q *request) nothing() error {
	q.w.WriteHeader(http.StatusNoContent)
	q.sent = true
	return nil
}
