package coord

import "strings"

// Micros is a time on an authority's clock, in microseconds since the Unix epoch. It is never compared with another clock.
type Micros int64

// Mode says who grants slots and rates.
type Mode string

// The modes. Epochs rise only on entering ModeDrain.
const (
	ModeDB    Mode = "db"
	ModeDrain Mode = "drain"
	ModeRedis Mode = "redis"
)

// Ident is what makes a database server the one it was (rule 13). A different one means that committed rows may be gone.
type Ident struct {
	// System changes when another copy of the data answers: system identifier and timeline, server uuid, file uuid and inode.
	System string
	// Start changes when the server was restarted; the data is the same unless Lossy.
	Start string
	// Lossy says that a crash of this server may lose commits it had confirmed.
	Lossy bool
}

// String is the form kept in the authority row; ParseIdent reads it.
func (i Ident) String() string {
	lossy := "durable"
	if i.Lossy {
		lossy = "lossy"
	}
	return i.System + "|" + i.Start + "|" + lossy
}

// ParseIdent reads what String wrote; anything else is the zero Ident, which matches no server.
func ParseIdent(s string) Ident {
	parts := strings.Split(s, "|")
	if len(parts) != 3 {
		return Ident{}
	}
	return Ident{System: parts[0], Start: parts[1], Lossy: parts[2] == "lossy"}
}

// RedisIdent is what makes a Redis the one that was seeded (rule 10).
type RedisIdent struct {
	RunID  string // run_id of INFO server: changes with a restart
	ReplID string // master_replid: changes with a promotion
	Stamp  uint64 // new for each execution of the seed; a flushed Redis has none
}

// IsZero reports an unset identity.
func (r RedisIdent) IsZero() bool { return r == RedisIdent{} }

// Same reports whether both name one server, whatever was seeded there.
func (r RedisIdent) Same(o RedisIdent) bool { return r.RunID == o.RunID && r.ReplID == o.ReplID }

// Authority is the one row that decides who grants.
type Authority struct {
	Epoch  Epoch
	Mode   Mode
	Target Mode       // while draining: where to
	DB     Ident      // of the database when the epoch began
	Redis  RedisIdent // in ModeRedis
	// HoldUntil: the drain does not end before this time of the database's clock (rule 13).
	HoldUntil Micros
	ChangedAt Micros
	Reason    string
	// Falls counts the fallbacks from Redis that followed each other closely; FellAt is the last one's time. They space the
	// attempts to return (rule 12).
	Falls  int
	FellAt Micros
	Pin    Mode // ModeDB: an operator keeps it there
}

// View is what a session knows of the authority and sends with every request, so that whoever executes it late refuses it.
type View struct {
	Epoch Epoch
	Mode  Mode
	DB    Ident
	Redis RedisIdent
	// Until is when the view ends on the database's clock, RedisUntil on that of Redis (0: Redis may not be asked).
	Until      Micros
	RedisUntil Micros
}
