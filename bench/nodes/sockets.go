package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fasthttp/websocket"

	"github.com/loadstone-db/loadstone/bench/measure"
)

const (
	watching = 200 // pages that follow one run
	deaf     = 20  // of them, those that stop to read
)

// sockets measures what pages that follow one run cost the server that runs it: without one, with 200, and with some
// of these that read nothing more; and how old what the others are told is meanwhile.
func sockets(ctx context.Context, b *bench) error {
	rounds, seconds := max(1, b.rounds), max(15, b.seconds)
	s, err := b.serve(ctx, b.dir+"/server")
	if err != nil {
		return err
	}
	t, err := b.on(ctx, template("sockets", 1, 20, 600+3*rounds*seconds))
	if err != nil {
		return err
	}
	run, err := s.run(ctx, t)
	if err != nil {
		return err
	}
	if err := s.measuring(ctx, run.RunID); err != nil {
		return err
	}
	for range rounds {
		alone, _, err := s.watched(ctx, run.RunID, 0, 0, seconds)
		if err != nil {
			return err
		}
		for _, silent := range []int{0, deaf} {
			cores, gaps, err := s.watched(ctx, run.RunID, watching, silent, seconds)
			if err != nil {
				return err
			}
			tell(fmt.Sprintf("%d sockets, of which %d read nothing", watching, silent),
				fmt.Sprintf("%.3f cores more than %.3f without (load %.1f)", cores-alone, alone, measure.LoadAverage()),
				"≤ 0.2")
			tell("between two messages of those that read, P50 and longest", fmt.Sprintf("%.2f and %.2f s",
				measure.Quantile(gaps, 0.5), slices.Max(gaps)), "")
		}
	}
	_, err = s.stopped(ctx, run.RunID)
	return err
}

// watched is the processor time of the server, in cores, while so many sockets follow a run, and the seconds between
// the messages of those that read.
func (s *server) watched(ctx context.Context, id string, clients, silent, seconds int) (float64, []float64, error) {
	at, err := url.Parse(s.base)
	if err != nil {
		return 0, nil, err
	}
	header := http.Header{"Origin": {s.base}}
	for _, c := range s.http.Jar.Cookies(at) {
		header.Add("Cookie", c.Name+"="+c.Value)
	}
	var mu sync.Mutex
	gaps := []float64{0}
	var reading sync.WaitGroup
	var open []*websocket.Conn
	defer func() {
		for _, c := range open {
			_ = c.Close()
		}
		reading.Wait()
	}()
	for i := range clients {
		d := websocket.Dialer{HandshakeTimeout: 10 * time.Second}
		conn, answer, err := d.DialContext(ctx, strings.Replace(s.base, "http", "ws", 1)+"/ws/runs/"+id, header)
		if err != nil {
			return 0, nil, fmt.Errorf("opening socket %d: %w", i+1, err)
		}
		_ = answer.Body.Close()
		open = append(open, conn)
		if i < silent {
			continue
		}
		reading.Go(func() {
			last := time.Time{}
			for {
				if _, _, err := conn.ReadMessage(); err != nil {
					return
				}
				now := time.Now()
				if !last.IsZero() {
					mu.Lock()
					gaps = append(gaps, now.Sub(last).Seconds())
					mu.Unlock()
				}
				last = now
			}
		})
	}
	cpu := used(s.process)
	if err := pause(ctx, time.Duration(seconds)*time.Second); err != nil {
		return 0, nil, err
	}
	_, cores := cpu()
	mu.Lock()
	defer mu.Unlock()
	if clients > 0 {
		gaps = gaps[1:]
		if len(gaps) < (clients-silent)*(seconds-3) {
			return 0, nil, fmt.Errorf("%d sockets were told %d times in %d s", clients-silent, len(gaps), seconds)
		}
	}
	return cores, slices.Clone(gaps), nil
}
