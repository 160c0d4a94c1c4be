package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"deepcrawl/coord"
)

// Codes of warnings, as docs/operations.md lists them.
const (
	warnNoNode     = "no-node"
	warnNoLeader   = "no-leader"
	warnSilent     = "silent"
	warnCaps       = "caps-differ"
	warnRunWorkers = "run-workers"
	warnVersions   = "versions-differ"
	warnLate       = "late-writes"
	warnPaused     = "paused"
	warnDrain      = "draining"
	warnRedis      = "redis-away"
	warnStarved    = "starved"
	warnMany       = "not-all-shown"
)

// warningCodes lists them all.
func warningCodes() []string {
	return []string{
		warnNoNode, warnNoLeader, warnSilent, warnCaps, warnRunWorkers, warnVersions, warnLate, warnPaused, warnDrain, warnRedis, warnStarved, warnMany,
	}
}

// redisAfter lets a node that has just started look for Redis first.
const redisAfter = 2 * time.Second

// silentAfter is three beats: a session is dead only after the reclaim time.
const silentAfter = 6 * time.Second

// warnings are what is not as it should be.
func (s *seen) warnings(st status) []clusterWarning {
	out := []clusterWarning{}
	warn := func(code, format string, args ...any) {
		out = append(out, clusterWarning{Code: code, Text: fmt.Sprintf(format, args...)})
	}
	nodes := s.liveNodes()
	if len(nodes) == 0 && len(st.Active)+len(st.Waiting) > 0 {
		warn(warnNoNode, "no node is running, and %s", waitVerb(len(st.Active)+len(st.Waiting)))
	}
	if len(nodes) > 0 && st.Leader == "" {
		warn(warnNoLeader, "no node leads: schedules, reaping and pruning wait for one")
	}
	if s.auth.Mode == coord.ModeDrain {
		warn(warnDrain, "coordination changes hands since %s: hosts that had no slots wait", localTime(st.Coordination.Since))
	}
	if text := st.Coordination.Away; text != "" {
		warn(warnRedis, "%s", text)
	}
	late := 0
	for _, n := range nodes {
		if n.Age > silentAfter {
			warn(warnSilent, "node %s has not been heard of for %s: it is dead, frozen or cut off; its work returns after the reclaim time", n.Member, n.Age.Round(time.Second))
		}
		if why := n.Facts[factPaused]; why != "" {
			warn(warnPaused, "node %s begins no work: %s", n.Member.Node, why)
		}
		late += factNumber(n, factLate)
	}
	if late > 0 {
		warn(warnLate, "%s refused since the nodes joined: a session was taken for dead while it worked, or the run was deleted", plural(int64(late), "late result"))
	}
	if text := differ(nodes, factCap); text != "" {
		warn(warnCaps, "DEEPCRAWL_HOST_INFLIGHT differs (%s): the smallest holds for all", text)
	}
	if text := differ(nodes, factVersion); text != "" {
		warn(warnVersions, "nodes run different versions (%s): fine during an upgrade, not for long", text)
	}
	if text := runWorkersIdle(nodes, len(st.Active)); text != "" {
		warn(warnRunWorkers, "%s", text)
	}
	if st.Fairness.Starved != "" {
		warn(warnStarved, "runs that got less than half of their share of the last minute: %s", st.Fairness.Starved)
	}
	if len(s.runs) == unfinishedShown {
		warn(warnMany, "only the oldest %d unfinished runs are shown", unfinishedShown)
	}
	return out
}

func waitVerb(n int) string {
	if n == 1 {
		return "1 run waits"
	}
	return count(int64(n)) + " runs wait"
}

func (s *seen) liveNodes() []coord.SessionInfo {
	var nodes []coord.SessionInfo
	for _, i := range s.sessions {
		if i.State == coord.Live && i.Role == coord.RoleNode {
			nodes = append(nodes, i)
		}
	}
	return nodes
}

// redisAway says which of the nodes that are to use Redis do not reach it, and who coordinates meanwhile, and for how long it has been so.
func redisAway(nodes []coord.SessionInfo, mode coord.Mode) (text string, gone time.Duration) {
	with := 0
	var away []string
	for _, n := range nodes {
		if !n.Redis.Configured {
			continue
		}
		with++
		if !n.Redis.Usable && n.Redis.For >= redisAfter {
			away = append(away, string(n.Member.Node))
			gone = max(gone, n.Redis.For)
		}
	}
	if len(away) == 0 {
		return "", 0
	}
	then := "the database coordinates meanwhile"
	if mode == coord.ModeRedis {
		then = "coordination moves to the database when most nodes do not"
	}
	return fmt.Sprintf("Redis is not reached by %d of %s (%s): %s", len(away), plural(int64(with), "node"), strings.Join(away, ", "), then), gone
}

// differ lists who says what where nodes do not say the same of a fact.
func differ(nodes []coord.SessionInfo, fact string) string {
	by := map[string][]string{}
	var order []string
	for _, n := range nodes {
		v, ok := n.Facts[fact]
		if !ok {
			continue
		}
		if by[v] == nil {
			order = append(order, v)
		}
		by[v] = append(by[v], string(n.Member.Node))
	}
	if len(by) < 2 {
		return ""
	}
	slices.Sort(order)
	var parts []string
	for _, v := range order {
		parts = append(parts, v+" on "+strings.Join(by[v], " and "))
	}
	return strings.Join(parts, ", ")
}

// runWorkersIdle says that the limit of workers on one run leaves workers without a place while so many runs are active (at least
// one is thought of).
func runWorkersIdle(nodes []coord.SessionInfo, active int) string {
	workers, least, most := 0, 0, 0
	for _, n := range nodes {
		w := factNumber(n, factWorkers)
		limit := factNumber(n, factRunWorkers)
		workers += w
		if limit > 0 {
			most = max(most, limit)
			if least == 0 || limit < least {
				least = limit
			}
		}
	}
	if active == 0 || least == 0 || most*active >= workers {
		return ""
	}
	shown := strconv.Itoa(least)
	if least != most {
		shown += " to " + strconv.Itoa(most)
	}
	return fmt.Sprintf("DEEPCRAWL_RUN_WORKERS is %s while the nodes have %d workers: with %s %d of them are idle; %d on every node lets all work on one run",
		shown, workers, plural(int64(active), "active run"), workers-most*active, workers)
}
