package api

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadstone-db/loadstone/server/auth"
)

func TestNetwork(t *testing.T) {
	t.Parallel()
	for ip, want := range map[string]string{"203.0.113.7": "203.0.113.7", "2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64",
		"2001:db8:1:2::1": "2001:db8:1:2::/64", "::ffff:203.0.113.7": "::ffff:203.0.113.7", "fe80::1%eth0": "fe80::/64",
		"": "", "nonsense": "nonsense"} {
		if got := auth.Network(ip); got != want {
			t.Errorf("%q is of %q, want %q", ip, got, want)
		}
	}
}

func accountOf(h *userHandlers, name, address string) string {
	account, _ := h.known.account(context.Background(), name, address)
	return account
}

// TestStrangersDoNotLockOut guesses one user's password from many addresses: further guesses wait, and so does the user
// from an address that it never came from; from one that it did it does not.
func TestStrangersDoNotLockOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, ctx := &userHandlers{guessLimiters: newGuessLimiters(nil)}, t.Context()
		h.known.add("ada", "home")
		for i := range 20 {
			if err := h.checkRate(ctx, "stranger", accountOf(h, "ada", "stranger"), false); i < 20 && err != nil {
				t.Fatalf("guess %d: %v", i, err)
			}
			h.accounts.RecordFailure(ctx, accountOf(h, "ada", "stranger"))
		}
		if h.checkRate(ctx, "elsewhere", accountOf(h, "ada", "elsewhere"), false) == nil {
			t.Error("a guess after 20 from elsewhere is heard at once")
		}
		if err := h.checkRate(ctx, "home", accountOf(h, "ada", "home"), false); err != nil {
			t.Errorf("the user at home: %v", err)
		}
		if err := h.checkRate(ctx, "elsewhere", accountOf(h, "eve", "elsewhere"), false); err != nil {
			t.Errorf("another user: %v", err)
		}
		time.Sleep(16 * time.Second)
		if err := h.checkRate(ctx, "elsewhere", accountOf(h, "ada", "elsewhere"), false); err != nil {
			t.Errorf("16 s later: %v", err)
		}
	})
}

func TestKnownIsBounded(t *testing.T) {
	t.Parallel()
	var k knownSignIns
	for i := range maxKnownSignIns + 5 {
		k.add("ada", time.Duration(i).String())
	}
	if len(k.pairs) > maxKnownSignIns {
		t.Errorf("%d pairs are kept", len(k.pairs))
	}
}

// TestWhoWasKnownBefore: sign-ins of before the process began are read once there is an answer, and once.
func TestWhoWasKnownBefore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		requested, away := 0, true
		k := knownSignIns{readAudit: func(ctx context.Context, add func(name, address string)) bool {
			requested++
			if away {
				<-ctx.Done()
				return false
			}
			add("ada", "home")
			return true
		}}
		ask := func() bool {
			_, before := k.account(t.Context(), "ada", "home")
			return before
		}
		began := time.Now()
		first, second := ask(), ask()
		if first || second || requested != 1 || time.Since(began) > 2*time.Second {
			t.Errorf("a log that does not answer was asked %d times in %v", requested, time.Since(began))
		}
		away = false
		time.Sleep(auditRetryDelay)
		for range 3 {
			if !ask() {
				t.Error("who was there before is not known")
			}
			time.Sleep(auditRetryDelay)
		}
		if requested != 2 {
			t.Errorf("the log was asked %d times", requested)
		}
		if _, before := k.account(t.Context(), "ada", "elsewhere"); before {
			t.Error("an address that nobody came from is known")
		}
	})
}
