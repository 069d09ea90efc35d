package run

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// TestAFileSystemThatHangsHoldsNobodyUp: it is asked once, however many want to know and for however long; the first ones
// are answered after two seconds, and later ones at once, until it answers.
func TestAFileSystemThatHangsHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p patientProbe
		var asked atomic.Int64
		hangs := make(chan error)
		ask := func() error { return p.ask(func() error { asked.Add(1); return <-hangs }) }
		var probes sync.WaitGroup
		for range 20 {
			probes.Go(func() {
				begin := time.Now()
				if err := ask(); !engine.HasCode(err, engine.CodeUnavailable) || time.Since(begin) != resultsCheckTimeout {
					t.Errorf("after %v: %v", time.Since(begin), err)
				}
			})
		}
		probes.Wait()
		time.Sleep(time.Hour)
		begin := time.Now()
		if err := ask(); !engine.HasCode(err, engine.CodeUnavailable) || time.Since(begin) != 0 {
			t.Errorf("after an hour and %v: %v", time.Since(begin), err)
		}
		if asked.Load() != 1 {
			t.Errorf("it was asked %d times while it hung", asked.Load())
		}
		hangs <- nil
		synctest.Wait()
		full := errors.New("the disk is full")
		go func() { hangs <- full }()
		if err := ask(); !errors.Is(err, full) || asked.Load() != 2 {
			t.Errorf("asked %d times: %v", asked.Load(), err)
		}
	})
}
