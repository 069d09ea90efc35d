// Package simtest holds tests alone: it lets the production code of servers, nodes and coordination live
// through faults that a seed decides about.
//
// # What is real and what is not
//
// run.Service, nodes, assignment, writer, recovery, finalize, worker.Node with its spool and its Parquet
// files, and the results in a folder are what runs in production. The network between them, the control store
// (memstore behind a layer of delays, outages and commits whose answer is lost), the load of a run worker, and the
// crashes of processes are played. Some writes are committed only when their caller has given them up, and while
// it makes them again: until then their run is locked, as its row is in Postgres. Time is that of a synctest
// bubble.
//
// # One loop
//
// Whatever crosses a border of a process (a message, a call to the store, a dial) is handed to the loop of the
// simulation, which takes what is handed to it when all goroutines have come to rest, in an order that does not
// depend on the scheduler, decides by the seed how long it takes and whether it fails, and lets one thing happen
// after the other. So a seed gives the same trace each time, unless a process was stopped; TestASeedGivesOneTrace
// holds that. Every side keeps the order of what one of its goroutines has said.
//
// # What is checked
//
// The invariants of the design, by a model that sees borders only: epochs and terminal states at the store, the
// rates of all loads that may issue at each moment, issues after the last contact plus its limit, events and
// phases, parts against their sums, and what was issued against what the run says in the end; what seconds count
// against what was done, and the sum of all snapshots against that in another order, some of them twice; and that
// nobody issues who has spoken with the owner of a run since it was stopped; a search answers with nothing that
// was not borne (9), and what run workers say of the time is right to within the error that they state (10).
// TestSeededBugsAreFound takes out fencing, the deadline, the removal of duplicates, stops, the counting of snapshots
// by their number, the ids by which the store knows events again, the expiry of leases, the bounds of nodes, the
// answers to what is wanted of runs, what nodes hear of other rates, the order in which a part is written and
// acknowledged, that a share is given once its bearer has heard, that a run worker is stored before it is placed, that
// a step of a search is borne, the comparison of clocks, the lease of own nodes, and that a new owner gives nobody
// more until all have answered it, and that it knows whom the one before has given up, one at a time. When
// everything is over nobody may write anything any more, hold room on a node, or keep a part for a server.
//
// # What runs do
//
// They are FIXED, BOUNDED or AUTO: at a rate, level or in stages, or one that their connections do not hold, so
// that run workers join; in a closed loop, of connections that are level or in stages; or they search for the
// limit, in both units. Some are stopped by a user. In a third of the worlds servers have nodes of their own, and
// the clocks of half of the machines, of nodes and of servers, are off by up to an hour, drift, and are set. Disks are
// full now and then, and slow for a while: those of the results, and the spools of nodes.
//
// A third of the runs has rules over executions and statement_statistics of all nodes: the product's rules, and the
// fragments of its nodes, over ways that break with those of the nodes. What a rule has read is no more than was
// recorded, what has triggered stays so and its run is not COMPLETED, none is RUNNING when its run is over, and one
// that is broken by what goes on when nothing fails any more fires within a minute (11).
//
// # What is not played
//
// Recorded runs, and stages that FIXED run workers follow by themselves.
//
// # A seed that fails
//
// It prints what was broken, the end of its trace, and the line that repeats it:
//
//	LOADSTONE_SEED=N go test ./engine/run/simtest -run '^TestSeeds$' -v
//
// and becomes a case of TestSeedsThatFailed, with what was wrong.
package simtest
