// Package linear makes the memories of guests out of anonymous mappings of the operating system.
//
// A mapping reserves as many addresses as a guest may ever have, and no memory: what the guest may
// use is made accessible as its memory grows, at the same place. So nothing is copied, nothing is
// left to the garbage collector, and a page is there only once the guest has written to it.
//
// # Lifetime
//
// Nothing here knows who still looks at a mapping. Whoever gives one back says that no guest runs
// in it and that nobody holds a slice of it, now or ever: the next guest gets the same addresses.
// What was given back has no access until it is taken again, and its pages, with what was in
// them, went back to the system before: a guest never reads what another wrote.
//
// Where the system refuses a mapping (a limit on addresses, strict accounting of memory, another
// system than Linux), Take says so, and the caller uses memory of Go.
package linear
