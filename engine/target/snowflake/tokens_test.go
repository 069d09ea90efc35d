package snowflake

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestLogInsWaitForOneTokenTogether: whatever gives tokens hangs. All log-ins end when its time is over, with one error,
// or at once with their own contexts, and the one that began the fetch takes nobody along. The next one asks anew.
func TestLogInsWaitForOneTokenTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked, hangs := 0, true
		source := newTokenSource(func(ctx context.Context) (string, time.Time, error) {
			if asked++; !hangs {
				return "good", time.Now().Add(time.Hour), nil
			}
			<-ctx.Done()
			return "", time.Time{}, ctx.Err()
		})
		begun := time.Now()
		var wg sync.WaitGroup
		logIn := func(ctx context.Context, want error, after time.Duration) {
			wg.Go(func() {
				_, err := source.get(ctx)
				if took := time.Since(begun); !errors.Is(err, want) || took != after {
					t.Errorf("after %v: %v", took, err)
				}
			})
			synctest.Wait()
		}
		impatient, cancel := context.WithCancel(t.Context())
		logIn(impatient, context.Canceled, time.Second)
		for range 7 {
			logIn(t.Context(), context.DeadlineExceeded, tokenTimeout)
		}
		time.Sleep(time.Second)
		cancel()
		wg.Wait()
		if asked != 1 {
			t.Errorf("asked %d times", asked)
		}
		hangs = false
		if token, err := source.get(t.Context()); token != "good" || err != nil || asked != 2 {
			t.Errorf("%q, %v, asked %d times", token, err, asked)
		}
	})
}
