package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server"
)

// network is one of many that belong to one who floods: a /64 of a /32.
func network(i int64) string { return fmt.Sprintf("2001:db8:%x:%x::1", i>>16&0xffff, i&0xffff) }

// TestAFloodLocksNobodyOut guesses passwords as fast as it can from ever more networks, of one user and of names that
// do not exist. The user signs in from where it has signed in before, also on a server that has just begun, and others
// sign in from anywhere.
func TestAFloodLocksNobodyOut(t *testing.T) {
	trusting := func(o *server.Options) { o.Proxies = loopbackProxy(t) }
	b := start(t, trusting)
	b.join("ada", store.RoleOperator)
	b.join("eve", store.RoleOperator)
	const home = "198.51.100.7"
	b.signIn("ada", password, "X-Forwarded-For", home).want(t, http.StatusOK)
	second := start(t, trusting, func(o *server.Options) { o.Store, o.Runs = b.store, b.runs })

	// More networks than a limiter tells apart have failed before.
	var group sync.WaitGroup
	var from atomic.Int64
	for range 16 {
		group.Go(func() {
			for n := from.Add(1); n <= 6000; n = from.Add(1) {
				b.do("POST", "/api/auth/signin", map[string]any{"token": "guess"}, "Authorization", "", "X-Forwarded-For",
					network(n))
			}
		})
	}
	group.Wait()
	b.signIn("eve", password, "X-Forwarded-For", "203.0.113.20").want(t, http.StatusOK)

	for _, b := range []*bench{b, second} {
		stop := make(chan struct{})
		var received, refused atomic.Int64
		for i := range 48 {
			group.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					name := "ada"
					if i%3 == 0 {
						name = fmt.Sprint("nobody-", from.Add(1))
					}
					switch a := b.signIn(name, "not the right one", "X-Forwarded-For", network(from.Add(1))); a.StatusCode {
					case http.StatusUnauthorized:
						received.Add(1)
					case http.StatusTooManyRequests:
						refused.Add(1)
					default:
						t.Errorf("a guess: %d %s", a.StatusCode, a.body)
					}
				}
			})
		}
		// A look now and then: who looks all the time takes a processor from those who guess.
		for (received.Load() == 0 || refused.Load() < 100) && !t.Failed() {
			time.Sleep(5 * time.Millisecond)
		}
		for i := range 4 {
			if a := b.signIn("ada", password, "X-Forwarded-For", home); a.StatusCode != http.StatusOK {
				t.Errorf("sign-in %d of the user from where it was before: %d %s", i, a.StatusCode, a.body)
			}
		}
		close(stop)
		group.Wait()
		t.Logf("%d guesses were heard, %d refused unheard", received.Load(), refused.Load())
	}
}

// TestAddressesThatAreMadeUp: nobody gets further guesses by what it says of itself, nor by one of the many addresses
// of its network.
func TestAddressesThatAreMadeUp(t *testing.T) {
	t.Parallel()
	wrong := strings.Repeat("horse ", 50) // too long to be compared, which takes time
	for name, c := range map[string]struct {
		trusted bool
		from    func(i int) string
	}{
		"no proxy is trusted":             {false, func(i int) string { return fmt.Sprintf("203.0.113.%d", i) }},
		"written before what a proxy did": {true, func(i int) string { return fmt.Sprintf("203.0.113.%d, 198.51.100.9", i) }},
		"a proxy's own before it": {true, func(i int) string {
			return fmt.Sprintf("203.0.113.%d, 198.51.100.9, 127.0.0.9", i)
		}},
		"no address": {true, func(i int) string { return fmt.Sprintf("unknown-%d", i) }},
		"one /64":    {true, func(i int) string { return fmt.Sprintf("2001:db8:1:2:%x::%x", i+1, i) }},
		"one /64, with ports and brackets": {true, func(i int) string {
			return fmt.Sprintf("[2001:db8:1:2::%x]:%d", i+1, 1000+i)
		}},
		"IPv4 within IPv6": {true, func(i int) string {
			return []string{"203.0.113.5", "::ffff:203.0.113.5", "::ffff:cb00:7105"}[i%3]
		}},
	} {
		b := start(t, func(o *server.Options) {
			if c.trusted {
				o.Proxies = loopbackProxy(t)
			}
		})
		refused := 0
		for i := range 16 {
			if b.signIn(fmt.Sprint("user", i), wrong, "X-Forwarded-For", c.from(i)).StatusCode == http.StatusTooManyRequests {
				refused++
			}
		}
		if refused < 5 {
			t.Errorf("%s: %d of 16 guesses were refused unheard", name, refused)
		}
	}
}
