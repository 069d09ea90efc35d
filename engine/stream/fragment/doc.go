// Package fragment runs the part of a continuous query that is one worker's: the heads of the sources that are read
// there, and on one worker of the query the tail, which merges what heads come to and writes to the sink. It runs the
// same way in the server's process and on a node.
//
// # Life
//
// Who owns the query has a Link to each of its fragments, and a fragment lives as long as its link: when the link ends,
// for whatever reason, the fragment ends. On it words go back and forth:
//
//	owner                      fragment
//	  ───── (Spec) ──────────▶           it binds the statement, opens its sources and the sink
//	  ◀──── Ready ────────────
//	  ───── Go ──────────────▶           when all fragments of the query are ready: rows begin to flow
//	  ◀──── Frame, Report ────           what its heads come to, and each second what became of rows
//	  ───── Frame ───────────▶           to the tail: what heads elsewhere came to, handed on as it is
//	  ───── Drain, Stop ─────▶           sources end first, or all at once
//	  ◀──── End ──────────────           the last word: what it came to
//
// Rows go through the owner, since nodes need not reach each other. A link takes words one after the other, and waits
// while its other end is busy: so a tail that is busy holds the sources back.
//
// # Fencing
//
// A Key has the epoch of the owner and the attempt within it. A Host runs one fragment of a query at a time: a later
// key ends an earlier one, and waits until that has gone; an earlier one is refused.
package fragment
