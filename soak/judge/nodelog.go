package judge

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Rules checked with the nodes' logs.
const (
	RuleLog     Rule = "log"     // a node logged an error, a panic, or something that is no log line
	RuleLeaders Rule = "leaders" // two nodes led at once, or the fence of leading did not grow
)

// LogLine is one line a node logged.
type LogLine struct {
	Node  string
	At    time.Time
	Level string // "" for a line that is none
	Msg   string
	Err   string
	Attrs map[string]any
	Text  string // as it was
}

// ReadNodeLog reads a node's log in JSON form. What is no log line is kept as text.
func ReadNodeLog(node string, r io.Reader) ([]LogLine, error) {
	var lines []LogLine
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 64<<10), 4<<20)
	for in.Scan() {
		l := LogLine{Node: node, Text: in.Text()}
		var attrs map[string]any
		if json.Unmarshal(in.Bytes(), &attrs) == nil {
			l.Level, _ = attrs["level"].(string)
			l.Msg, _ = attrs["msg"].(string)
			l.Err, _ = attrs["err"].(string)
			at, _ := attrs["time"].(string)
			l.At, _ = time.Parse(time.RFC3339Nano, at)
			l.Attrs = attrs
		}
		lines = append(lines, l)
	}
	if err := in.Err(); err != nil {
		return lines, fmt.Errorf("read log of node %s: %w", node, err)
	}
	return lines, nil
}

// Errors that no loss of a connection explains: the statement or its data are wrong, or contention was not handled.
var sqlTrouble = regexp.MustCompile(`(?i)SQLSTATE|syntax error|duplicate (key|entry)|constraint|deadlock|database is locked|SQLITE_|Error 1\d{3}|lock wait timeout|no such (table|column)`)

// States of a server that is going down, coming up or gone (PostgreSQL class 57P, 08; MySQL 1053, 1927, 2006, 2013).
var serverGone = regexp.MustCompile(`SQLSTATE (57P0\d|08\w{3}|25006)|Error (1053|1927|2006|2013)|is shutting down|is starting up|connection (refused|reset)|broken pipe|unexpected EOF|bad connection`)

// BadLines finds what a healthy node does not log: errors, panics and races, and database errors that the faults do not explain.
// outages are when the database was harmed; connections may be lost from then until slack after. That its session is over is what
// a process is to say which was frozen, or cut off, for longer than a session lives. switches are when Redis was harmed. A process
// that ends by itself says why in one line; whether it might is for OverBounds to say.
func BadLines(lines []LogLine, lives []Life, outages []Outage, switches []Span, slack time.Duration) []Violation {
	var vs []Violation
	out := func(l LogLine) bool {
		return slices.ContainsFunc(outages, func(o Outage) bool { return o.of(l.Node) && !l.At.Before(o.From) && l.At.Before(o.To.Add(slack)) })
	}
	asleep := func(l LogLine) bool {
		return slices.ContainsFunc(lives, func(x Life) bool {
			return x.Node == l.Node && slices.ContainsFunc(x.Frozen, func(f Span) bool { return l.At.After(f.From) && l.At.Before(f.To.Add(slack)) })
		})
	}
	noRedis := func(l LogLine) bool {
		return strings.Contains(strings.ToLower(l.Err), "redis") && slices.ContainsFunc(switches, func(s Span) bool { return !l.At.Before(s.From) && l.At.Before(s.To.Add(slack)) })
	}
	gaveUp := func(l LogLine) bool {
		return strings.HasPrefix(l.Text, "deepcrawl: ") && slices.ContainsFunc(lives, func(x Life) bool { return x.Node == l.Node && x.End == EndItself })
	}
	quiet := map[string]bool{} // one panic is many lines
	for _, l := range lines {
		v := Violation{Rule: RuleLog, At: l.At}
		lost := serverGone.MatchString(l.Err) || strings.Contains(l.Err, "unavailable") || strings.Contains(l.Err, "does not answer")
		switch {
		case strings.TrimSpace(l.Text) == "":
			continue
		case l.Level == "" && gaveUp(l):
			continue
		case l.Level == "":
			if quiet[l.Node] {
				continue
			}
			quiet[l.Node] = true
			v.Detail = "is no log line: " + cut(l.Text)
		case lost && (out(l) || noRedis(l)), strings.Contains(l.Err, "session is fenced") && (out(l) || asleep(l)):
			continue
		case l.Level == "ERROR":
			v.Detail = cut(l.Text)
		case lost || sqlTrouble.MatchString(l.Err):
			v.Detail = "database error: " + cut(l.Text)
		default:
			continue
		}
		v.Detail = "node " + l.Node + " " + v.Detail
		vs = append(vs, v)
	}
	return vs
}

// Leaks finds nodes that had more goroutines left at their end than the most allowed, by what they logged.
func Leaks(lines []LogLine, most int) []Violation {
	var vs []Violation
	for _, l := range lines {
		n, ok := l.Attrs["goroutines"].(float64)
		if l.Msg == "left over" && ok && int(n) > most {
			vs = append(vs, Violation{Rule: RuleLeak, At: l.At, Detail: fmt.Sprintf("node %s had %d goroutines left at its end, allowed are %d", l.Node, int(n), most)})
		}
	}
	return vs
}

func cut(s string) string {
	if len(s) > 400 {
		return s[:400] + "…"
	}
	return s
}

// Act is something done by who leads, with the fence under which it was done, in the order in which it was recorded.
type Act struct {
	Node  string
	At    time.Time
	Epoch uint64
	N     uint64
	What  string
}

// Leadings are the acts of taking the lead that the nodes logged, in order of time.
func Leadings(lines []LogLine) []Act {
	var acts []Act
	for _, l := range lines {
		if l.Msg != "leading" {
			continue
		}
		fence, _ := l.Attrs["fence"].(string)
		a := Act{Node: l.Node, At: l.At, What: "leading"}
		epoch, n, _ := strings.Cut(fence, ".")
		a.Epoch, _ = strconv.ParseUint(epoch, 10, 64)
		a.N, _ = strconv.ParseUint(n, 10, 64)
		acts = append(acts, a)
	}
	slices.SortStableFunc(acts, func(a, b Act) int { return a.At.Compare(b.At) })
	return acts
}

// TwoLeaders finds acts whose fence is not above that of the leader before, and two nodes acting under one fence.
func TwoLeaders(acts []Act) []Violation {
	var vs []Violation
	var high Act
	for i, a := range acts {
		older := a.Epoch < high.Epoch || a.Epoch == high.Epoch && a.N < high.N
		same := a.Epoch == high.Epoch && a.N == high.N
		if i > 0 && (older || same && a.Node != high.Node) {
			vs = append(vs, Violation{
				Rule: RuleLeaders, At: a.At,
				Detail: fmt.Sprintf("node %s did %q under fence %d.%d after node %s had done %q under %d.%d", a.Node, a.What, a.Epoch, a.N, high.Node, high.What, high.Epoch, high.N),
			})
			continue
		}
		high = a
	}
	return vs
}
