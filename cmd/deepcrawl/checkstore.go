package main

import (
	"errors"
	"fmt"
	"time"

	"deepcrawl/crawl"
	"deepcrawl/storage"
)

// claims writes and reads a run of a tenant made for it. Its Home is no node's, so nobody works it.
func (k *checker) claims(joined bool) {
	var run storage.Run
	var found []storage.Discovery
	var mine, others []storage.Claim
	host := k.key.Name()
	made := k.check("run: written", adviseDB, joined, func() (_ string, err error) {
		run, found, err = k.makeRun(host)
		return "", err
	})
	claimed := k.check("claim: each URL once", adviseReport, made, func() (string, error) {
		var err error
		if mine, err = k.claim(k.a.ID().String(), run.ID, host, 1); err != nil {
			return "", err
		}
		if others, err = k.claim(k.b.ID().String(), run.ID, host, 2); err != nil {
			return "", err
		}
		if len(mine) != 1 || len(others) != 1 || mine[0].ID == others[0].ID {
			return "", fmt.Errorf("two sessions claimed %d and %d of %d URLs", len(mine), len(others), len(found))
		}
		return "", nil
	})
	finish := func(owner string, c storage.Claim, token storage.ClaimToken) (storage.Outcome, error) {
		out, err := k.store.Finish(k.ctx, storage.Owner(owner), []storage.Result{{Run: run.ID, ID: c.ID, Token: token, Page: &storage.PageResult{
			State: storage.Fetched, Status: 200, Attempts: 1, Title: k.name,
		}}})
		if err != nil {
			return 0, err
		}
		return out[0], nil
	}
	k.check("claim: late write refused", adviseReport, claimed, func() (string, error) {
		out, err := finish(k.b.ID().String(), mine[0], others[0].Token)
		if err == nil && out != storage.OutcomeStale {
			err = errors.New("a result with another claim's token was written")
		}
		return "", err
	})
	k.check("claim: written and read", adviseDB, claimed, func() (string, error) {
		began := k.p.now()
		out, err := finish(k.a.ID().String(), mine[0], mine[0].Token)
		if err != nil {
			return "", err
		}
		if out != storage.OutcomeDone {
			return "", errors.New("the result was refused")
		}
		took := k.p.now().Sub(began)
		for _, d := range found {
			row, err := k.store.PageByKey(k.ctx, run.ID, d.Key)
			if err != nil {
				return "", err
			}
			if row.ID == mine[0].ID && (row.Title != k.name || row.State != storage.Fetched) {
				return "", fmt.Errorf("read back as %s %q", row.State, row.Title)
			}
		}
		return "written in " + took.Round(time.Millisecond/10).String(), nil
	})
	k.check("fence: past leader refused", adviseReport, made, func() (string, error) {
		past, today := storage.Fence{Name: k.name, Epoch: 1, Number: 1}, storage.Fence{Name: k.name, Epoch: 1, Number: 2}
		step := storage.Step{Name: "check", Cursor: []byte("today")}
		if err := k.store.SaveStep(k.ctx, run.ID, step, today); err != nil {
			return "", err
		}
		step.Cursor = []byte("past")
		err := k.store.SaveStep(k.ctx, run.ID, step, past)
		if err == nil {
			return "", errors.New("a write with a past fence was taken")
		}
		if !errors.Is(err, storage.ErrFenced) {
			return "", err
		}
		return "", nil
	})
}

func (k *checker) claim(owner string, run storage.RunID, host string, n int) ([]storage.Claim, error) {
	return k.store.Claim(k.ctx, storage.Owner(owner), []storage.ClaimRequest{{Run: run, Host: host, N: n}})
}

// makeRun makes a tenant and a run with two URLs that is being crawled by nobody.
func (k *checker) makeRun(host string) (run storage.Run, found []storage.Discovery, err error) {
	tariffs, err := k.store.Tariffs(k.ctx)
	if err != nil || len(tariffs) == 0 {
		return run, nil, errors.Join(err, errors.New("there is no tariff"))
	}
	tariff := tariffs[0].Name
	for _, t := range tariffs {
		if t.Name == "unlimited" {
			tariff = t.Name
		}
	}
	if err := k.store.PutTenant(k.ctx, storage.Tenant{Name: k.name, Tariff: tariff}); err != nil {
		return run, nil, err
	}
	spec := crawl.Spec{Seeds: []string{"http://" + host + "/1"}}
	run, err = k.store.CreateRun(k.ctx, storage.NewRun{Tenant: k.name, Site: host, Spec: spec.Encode(), Home: k.name})
	if err != nil {
		return run, nil, err
	}
	run, err = k.store.SetRunState(k.ctx, run.ID, []storage.RunState{storage.RunQueued}, storage.RunCrawling, "", time.Time{})
	if err != nil {
		return run, nil, err
	}
	if run.State != storage.RunCrawling {
		return run, nil, fmt.Errorf("the run is %s", run.State)
	}
	for _, path := range []string{"/1", "/2"} {
		place, err := spec.Find("http://" + host + path)
		if err != nil {
			return run, nil, err
		}
		found = append(found, storage.Discovery{Key: place.Key, URL: place.URL, Host: place.Host, Priority: storage.MinPriority})
	}
	added, err := k.store.Discover(k.ctx, run.ID, found, nil)
	if err == nil && added != len(found) {
		err = fmt.Errorf("%d of %d URLs were stored", added, len(found))
	}
	return run, found, err
}
