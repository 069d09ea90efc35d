package query_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/query"
)

// TestManyQueriesOfOneUserLeaveAPlaceToOthers: forty slow queries of one user take two places, ten wait and the others
// are refused; another user's gets its place at once, and turns go over users.
func TestManyQueriesOfOneUserLeaveAPlaceToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := query.NewPlaces(query.DefaultPlaceLimits())
		var all sync.WaitGroup
		var mu sync.Mutex
		var refused int
		var order []string
		ask := func(user string, takes time.Duration) {
			all.Go(func() {
				leave, err := p.Acquire(t.Context(), user)
				mu.Lock()
				if err != nil {
					if !engine.HasCode(err, engine.CodeRateLimited) || engine.AsError(err).Hint == "" {
						t.Errorf("refused with %v", err)
					}
					refused++
				} else {
					order = append(order, user)
				}
				mu.Unlock()
				if err == nil {
					time.Sleep(takes)
					leave()
				}
			})
		}
		for range 40 {
			ask("viewer", 20*time.Second)
		}
		synctest.Wait()
		if len(order) != 2 || refused != 28 {
			t.Fatalf("%d are executed, %d refused", len(order), refused)
		}
		began := time.Now()
		leave, err := p.Acquire(t.Context(), "other")
		if err != nil || time.Since(began) != 0 {
			t.Fatalf("another user waits %v: %v", time.Since(began), err)
		}
		leave()
		// Four more users with two each: nobody has two while only a third of the places are free, everybody has one.
		order = nil
		for i := range 4 {
			ask(fmt.Sprint("user", i), 20*time.Second)
			ask(fmt.Sprint("user", i), 20*time.Second)
		}
		synctest.Wait()
		slices.Sort(order)
		if got := slices.Compact(slices.Clone(order)); len(got) != 4 || len(order) != 4 {
			t.Errorf("places went to %v", order)
		}
		all.Wait()
	})
}

// TestAQuickQueryHasATurnBesideSlowOnesOfAll: slow queries of many users take all places but one, which is for those
// who have taken little of late.
func TestAQuickQueryHasATurnBesideSlowOnesOfAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := query.NewPlaces(query.DefaultPlaceLimits())
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() {
				if leave, err := p.Acquire(t.Context(), fmt.Sprint("user", i%10)); err == nil {
					time.Sleep(25 * time.Second)
					leave()
				}
			})
		}
		time.Sleep(51 * time.Second) // each of them has had a turn
		for range 20 {
			began := time.Now()
			leave, err := p.Acquire(t.Context(), "quick")
			if err != nil || time.Since(began) > 0 {
				t.Fatalf("it waits %v: %v", time.Since(began), err)
			}
			time.Sleep(10 * time.Millisecond)
			leave()
		}
		all.Wait()
	})
}

// TestTurnsGoOverUsers: whoever began to wait first with one query is not behind all queries of another user.
func TestTurnsGoOverUsers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := query.NewPlaces(query.PlaceLimits{Total: 1, PerUser: 1, Waiting: 5, Wait: time.Hour})
		first, err := p.Acquire(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		var order []string
		for _, user := range []string{"a", "a", "a", "b", "b", "c"} {
			all.Go(func() {
				leave, err := p.Acquire(t.Context(), user)
				if err != nil {
					t.Error(err)
					return
				}
				order = append(order, user)
				leave()
			})
			synctest.Wait()
		}
		first()
		all.Wait()
		if want := []string{"a", "b", "c", "a", "b", "a"}; !slices.Equal(order, want) {
			t.Errorf("turns were %v, want %v", order, want)
		}
	})
}

// TestAQueryThatWaitsIsCancelled: it ends with the cause, and its place goes to the next.
func TestAQueryThatWaitsIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := query.NewPlaces(query.PlaceLimits{Total: 1, PerUser: 1, Waiting: 2, Wait: time.Minute})
		leave, err := p.Acquire(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := make(chan error, 1)
		go func() { _, err := p.Acquire(ctx, "b"); ended <- err }()
		synctest.Wait()
		cancel(query.ErrCancelled)
		if err := <-ended; !errors.Is(err, query.ErrCancelled) {
			t.Errorf("it ended with %v", err)
		}
		if _, err := p.Acquire(t.Context(), "c"); !engine.HasCode(err, engine.CodeRateLimited) {
			t.Errorf("after a minute: %v", err)
		}
		leave()
		if leave, err = p.Acquire(t.Context(), "d"); err != nil {
			t.Fatalf("a place is lost: %v", err)
		}
		leave()
	})
}

// TestWhatWaitsForOtherServersHoldsNoPlace: queries whose user has enough of them on other servers wait outside, and
// what others ask has the place; they begin when they may, and are refused after their time.
func TestWhatWaitsForOtherServersHoldsNoPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limits := query.DefaultPlaceLimits()
		limits.Total, limits.PerUser, limits.Reserved = 1, 1, 0
		p := query.NewPlaces(limits)
		var may atomic.Bool
		begun := make(chan error)
		ask := func(ctx context.Context) {
			leave, err := p.AcquireChecked(ctx, func() (func(), error) { return p.Acquire(ctx, "ada") },
				func(context.Context) error {
					if may.Load() {
						return nil
					}
					return query.BusyError("2 of your queries are under way on all servers.")
				})
			if err == nil {
				leave()
			}
			begun <- err
		}
		began := time.Now()
		go ask(t.Context())
		synctest.Wait()
		leave := p.TryAcquire("bob")
		if leave == nil {
			t.Fatal("a query that waits for other servers holds the place")
		}
		time.Sleep(time.Second)
		leave()
		may.Store(true)
		if err := <-begun; err != nil || time.Since(began) > 2*time.Second {
			t.Errorf("it begins after %v: %v", time.Since(began), err)
		}
		may.Store(false)
		began = time.Now()
		go ask(t.Context())
		if err := <-begun; !engine.HasCode(err, engine.CodeRateLimited) || time.Since(began) > limits.Wait+time.Second {
			t.Errorf("it ends after %v: %v", time.Since(began), err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		go ask(ctx)
		synctest.Wait()
		cancel(query.ErrCancelled)
		if err := <-begun; !errors.Is(err, query.ErrCancelled) {
			t.Errorf("cancelled, it ends with %v", err)
		}
	})
}
