// Package rediscoord coordinates through a Redis (6.2 or later) or a Valkey: each call one Lua script, executed by the server as a
// whole, on its clock. What the scripts decide is what coord/core decides; the suite compares them.
//
// There are two faces. [Second] has the slots and rates of a cluster whose authority is a database (see coord/failover): it is
// seeded for an epoch, and every grant checks the epoch, the stamp of the seed, run_id and master_replid, and the end of the view.
// [Coord] is the whole contract on a Redis alone.
//
// # What a Redis alone cannot promise
//
// A Redis that was emptied (FLUSHALL, a restart without persistence) has forgotten its sessions too, and nothing there tells the
// first one to register what was granted before: until the views of those that lived have ended, caps may be exceeded. A restart
// that kept most of its data is noticed, and waited out (rule 13). Where that matters the authority belongs in a database, which
// is what coord/failover does and what DEEPCRAWL_COORD=redis means.
//
// # Which servers may be used
//
// One whose maxmemory-policy is not noeviction could drop slots, a replica would show a past, a Redis Cluster would spread what one
// script must see over several servers: each is refused with its name.
package rediscoord
