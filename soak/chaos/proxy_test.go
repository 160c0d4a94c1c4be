package chaos_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"deepcrawl/soak/chaos"
)

// echo answers each line with its name and the line.
func echo(t *testing.T, name string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for in := bufio.NewScanner(c); in.Scan(); {
					if _, err := fmt.Fprintf(c, "%s %s\n", name, in.Text()); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

type client struct {
	net.Conn
	in *bufio.Reader
}

func dial(t *testing.T, p *chaos.Proxy) client {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return client{c, bufio.NewReader(c)}
}

// ask sends a line, and reads one within d; "" when none came, "closed" when the connection is over.
func (c client) ask(line string, d time.Duration) string {
	if line != "" {
		if _, err := io.WriteString(c, line+"\n"); err != nil {
			return "closed"
		}
	}
	_ = c.SetReadDeadline(time.Now().Add(d))
	got, err := c.in.ReadString('\n')
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return ""
	}
	if err != nil {
		return "closed"
	}
	return got[:len(got)-1]
}

func TestProxy(t *testing.T) {
	const soon, never = 5 * time.Second, 50 * time.Millisecond
	p, err := chaos.NewProxy("tcp", echo(t, "a"))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	c := dial(t, p)
	want := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: got %q, want %q", what, got, want)
		}
	}
	want("passes", c.ask("1", soon), "a 1")
	for name, cut := range map[string][2]bool{"both ways": {true, true}, "requests": {true, false}, "answers": {false, true}} {
		p.Cut(cut[0], cut[1])
		want("cut, "+name, c.ask("2", never), "")
		other := dial(t, p)
		want("a new connection, "+name, other.ask("3", never), "")
		p.Mend(false)
		want("late, "+name, c.ask("", soon), "a 2")
		want("late on the new one, "+name, other.ask("", soon), "a 3")
	}
	p.Retarget(echo(t, "b"))
	want("an open connection stays", c.ask("4", soon), "a 4")
	want("a new one goes elsewhere", dial(t, p).ask("5", soon), "b 5")
	p.Cut(true, true)
	p.Mend(true)
	want("reset", c.ask("6", soon), "closed")
	p.Close()
	p.Close()
	if _, err := net.Dial("tcp", p.Addr()); err == nil {
		t.Error("a closed proxy listens")
	}
}
