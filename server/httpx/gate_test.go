package httpx

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(2, 6, 4)
		tooMany := func(err error) bool {
			var p *Problem
			return errors.As(err, &p) && p.Status == http.StatusTooManyRequests
		}
		leave, err := g.Acquire(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := g.Acquire(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		answers := make(chan error, 2)
		for range 2 {
			go func() {
				_, err := g.Acquire(t.Context(), "a")
				answers <- err
			}()
		}
		synctest.Wait()
		begin := time.Now()
		if _, err := g.Acquire(t.Context(), "a"); !tooMany(err) || time.Since(begin) > 0 {
			t.Errorf("a fifth request of one caller: %v after %v", err, time.Since(begin))
		}
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		go func() {
			_, err := g.Acquire(ctx, "b")
			gone <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Errorf("a caller who left: %v", err)
		}
		leave()
		leave() // twice is safe
		if err := <-answers; err != nil {
			t.Errorf("the next in turn: %v", err)
		}
		if err := <-answers; !tooMany(err) || time.Since(begin) != gateTimeout {
			t.Errorf("one who waited too long: %v after %v", err, time.Since(begin))
		}
		if g.total != 2 || g.callers["a"] != 2 || g.callers["b"] != 0 {
			t.Errorf("%d are inside, %v", g.total, g.callers)
		}
	})
}
