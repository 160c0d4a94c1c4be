package fetch_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"deepcrawl/crawl/fetch"
)

func TestACancellationWithACauseOfTheCallersIsCanceled(t *testing.T) {
	asked := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
	}))
	defer s.Close()
	c, err := fetch.New(fetch.Config{AllowPrivate: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	mine := errors.New("session is over")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-asked
		cancel(mine)
	}()
	res := c.Do(ctx, fetch.Request{URL: s.URL})
	defer res.Release()
	if res.Reason != fetch.ReasonCanceled || !errors.Is(res.Err, mine) {
		t.Errorf("got reason %q, error %v; want %q with the cause", res.Reason, res.Err, fetch.ReasonCanceled)
	}
}
