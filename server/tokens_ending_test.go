package server

import (
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

// TestATokenWithoutAnEndDoesNotEnd: it is as well in use, and warned of never.
func TestATokenWithoutAnEndDoesNotEnd(t *testing.T) {
	now := time.Unix(1_790_000_000, 0)
	token := func(used, ends time.Duration) (t store.Token) {
		if used != 0 {
			t.LastUsedAt = engine.At(now.Add(used))
		}
		if ends != 0 {
			t.ExpiresAt = engine.At(now.Add(ends))
		}
		return t
	}
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		token store.Token
		want  int
	}{
		"it ends soon":         {token(-day, 5*day), 1},
		"it ends later":        {token(-day, 15*day), 0},
		"it has no end":        {token(-day, 0), 0},
		"nobody uses it":       {token(0, 5*day), 0},
		"nobody uses it since": {token(-8*day, 5*day), 0},
	} {
		if n := tokensEnding([]store.Token{c.token}, now); n != c.want {
			t.Errorf("%s: %d", name, n)
		}
	}
}
