// This part brings the workload's operations to the connections: a Source hands out
// whole batches of the plugin's stream, filled ahead where that saves a wait, and
// bounds what they keep; a Unit is what a connection runs at a time, one operation or
// a transaction; and Progress walks through a Unit, after each answer, as the
// retry policy says. Progress reads no clock and does no I/O, so that a loop over
// events and a goroutine that blocks both drive it.

package load
