package users

import "sync"

// known remembers who has signed in from where, for as long as the process lives. The zero value knows nobody.
type known struct {
	mu    sync.Mutex
	pairs map[string]struct{}
}

// mostKnown bounds what is remembered; past it everything is forgotten, which slows down who is guessed at and no more.
const mostKnown = 10_000

func (k *known) add(name, address string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.pairs == nil || len(k.pairs) >= mostKnown {
		k.pairs = map[string]struct{}{}
	}
	k.pairs[name+" "+address] = struct{}{}
}

// account is what attempts are counted for: the user, or the user at this address where it has signed in before.
// Names hold no spaces.
func (k *known) account(name, address string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, before := k.pairs[name+" "+address]; before {
		return name + " " + address
	}
	return name
}
