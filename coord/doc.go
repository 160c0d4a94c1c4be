// Package coord is the contract of deepcrawl's coordination: how many nodes that die, freeze and disagree keep a host's
// cap, its pauses, its rate and the leader's work true for all of them.
//
// There are two faces.
//
// The engine sees [Session]: one process's life in the cluster. It asks for permits to make requests, checks each start
// with the permit's guard, pauses hosts, shares rates and holds leases. Everything on the way of a page is answered from
// memory; the session talks to the backend in the background.
//
// A backend implements [Coord]: roles of a few methods, each one atomic transaction on an authority that all sessions
// share. Its decisions are those of package coord/core, the pure core that the simulator runs too.
//
// # What is promised
//
// Assuming clock rates within 5 %, pauses of a process no longer than [Timing.Pause], an authority that is linearizable or
// whose loss can be detected, and a client that aborts requests at [Timing.Request] less a second:
//
//   - requests in flight that a permit covers are at most the cap of each of the permit's keys, over all sessions, through
//     kill, restart, partition and change of authority;
//   - a gate, once known to the authority, never shortens except by [Gates.Clear]; it is in force at once where it was set
//     and everywhere within one beat and a second;
//   - rate grants in any window of length w are at most burst + rate x w;
//   - of two holders of a lease the later has the greater [Fence].
//
// # What is not promised
//
// A process frozen for longer than [Timing.Pause] (SIGSTOP, a suspended virtual machine) may, on waking, complete what it
// had already written to a socket: requests in flight are then at most cap plus what it held when it froze. It starts
// nothing new. No protocol can do better against a foreign web server. Permits are not handed out in order of asking; a
// waiting session is served within a few beats because holders above their share give back, not because it queued.
package coord
