package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/loadstone-db/loadstone/bench/measure"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
)

// patience is how long anything is waited for that is not the figure itself.
const patience = 10 * time.Minute

// process is a program of Loadstone that was started.
type process struct {
	cmd  *exec.Cmd
	log  string // where it writes what it says
	done chan struct{}
}

// start starts the binary. What it says goes to a file in dir.
func (b *bench) start(dir, name string, args ...string) (*process, error) {
	log, err := os.CreateTemp(dir, name+"-*.log")
	if err != nil {
		return nil, err
	}
	// It outlives the signal that ends the benchmark: stop ends it in order.
	cmd := exec.CommandContext(context.Background(), b.loadstone, args...)
	cmd.Stdout, cmd.Stderr = log, log
	// The databases of the bench are reached on sockets.
	cmd.Env = append(append(os.Environ(), "LOADSTONE_ALLOW_TARGETS=0.0.0.0/0,::/0,unix:/"), b.env...)
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	p := &process{cmd: cmd, log: log.Name(), done: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // how it ended is in its log
		_ = log.Close()
		close(p.done)
	}()
	b.onClose(func() { p.stop() })
	return p, nil
}

// stop ends it as an operator would, and kills it when it takes too long.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(time.Minute):
		p.kill()
	}
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// said is the end of what it has said, for an error.
func (p *process) said() string {
	text, _ := os.ReadFile(p.log)
	return string(text[max(0, len(text)-1500):])
}

// server is a server that was started, and a session with it.
type server struct {
	*process
	dir  string
	base string
	http *http.Client
}

// serve starts a server on a data directory; its own node takes nothing where args say so.
func (b *bench) serve(ctx context.Context, dir string, args ...string) (*server, error) {
	_ = os.Remove(filepath.Join(dir, "operator.json")) // of a process that was killed
	p, err := b.start(b.dir, "server", append([]string{"serve", "--listen", "127.0.0.1:0", "--calibrate", "off",
		"--data-dir", dir}, args...)...)
	if err != nil {
		return nil, err
	}
	jar, _ := cookiejar.New(nil)
	s := &server{process: p, dir: dir, http: &http.Client{Timeout: time.Minute, Jar: jar}}
	return s, s.signIn(ctx)
}

// signIn waits for the server and begins a session as its operator.
func (s *server) signIn(ctx context.Context) error {
	var operator struct{ Address, Secret string }
	err := s.await(ctx, "the server", func() (bool, error) {
		text, err := os.ReadFile(filepath.Join(s.dir, "operator.json"))
		if errors.Is(err, os.ErrNotExist) {
			return false, nil
		}
		return err == nil && json.Unmarshal(text, &operator) == nil && operator.Secret != "", err
	})
	if err != nil {
		return err
	}
	s.base = operator.Address
	var link map[string]string
	if err := s.call(ctx, http.MethodPost, "/api/auth/signin-links", struct{}{}, &link,
		"Authorization", "Bearer "+operator.Secret); err != nil {
		return err
	}
	for _, text := range link {
		if _, token, ok := strings.Cut(text, "/signin?token="); ok {
			return s.call(ctx, http.MethodPost, "/api/auth/signin", map[string]string{"token": token}, nil)
		}
	}
	return fmt.Errorf("no link to sign in with in %v", link)
}

// call makes a request of the API.
func (s *server) call(ctx context.Context, method, path string, in, out any, header ...string) error {
	text, err := json.Marshal(in)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, method, s.base+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Origin", s.base)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := s.http.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("%s %s: %s: %s", method, path, answer.Status, body)
	}
	if raw, ok := out.(*[]byte); ok {
		*raw = body
		return nil
	}
	if out == nil || len(body) == 0 {
		return nil
	}
	return json.Unmarshal(body, out)
}

func (s *server) get(ctx context.Context, path string, out any) error {
	return s.call(ctx, http.MethodGet, path, nil, out)
}

// await waits until something is so. Where the server ends meanwhile, it says what that said last.
func (s *server) await(ctx context.Context, what string, met func() (bool, error)) error {
	limit := time.Now().Add(patience)
	for {
		ok, err := met()
		if ok || err != nil {
			return err
		}
		if time.Now().After(limit) {
			return fmt.Errorf("%s did not come within %v; the server says:\n%s", what, patience, s.said())
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.done:
			return fmt.Errorf("%s did not come, and the server has ended:\n%s", what, s.said())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// token makes a token by which so many nodes may join.
func (s *server) token(ctx context.Context, uses int) (string, error) {
	var made struct{ Secret string }
	err := s.call(ctx, http.MethodPost, "/api/v1/node-tokens", map[string]any{"uses": uses, "valid_seconds": 3600}, &made)
	return made.Secret, err
}

// addNodes puts addresses into the catalog, and waits until their nodes are there.
func (s *server) addNodes(ctx context.Context, addresses []string) (took time.Duration, err error) {
	begin := time.Now()
	var adding errgroup.Group
	adding.SetLimit(4)
	for _, a := range addresses {
		adding.Go(func() (err error) {
			for range 5 { // the store of a busy machine may be late
				if err = s.call(ctx, http.MethodPost, "/api/v1/node-addresses", map[string]any{"address": a}, nil); err == nil {
					break
				}
			}
			return err
		})
	}
	if err := adding.Wait(); err != nil {
		return 0, err
	}
	err = s.active(ctx, len(addresses))
	return time.Since(begin), err
}

// active waits until so many nodes take work.
func (s *server) active(ctx context.Context, want int) error {
	return s.await(ctx, fmt.Sprintf("%d nodes", want), func() (bool, error) {
		m, err := s.metrics(ctx)
		return err == nil && int(m.value("loadstone_control_streams")) >= want, err
	})
}

func (s *server) nodes(ctx context.Context) ([]nodes.NodeInfo, error) {
	var list struct{ Nodes []nodes.NodeInfo }
	err := s.get(ctx, "/api/v1/nodes", &list)
	return list.Nodes, err
}

// run creates a run and starts it.
func (s *server) run(ctx context.Context, template map[string]any) (engine.Run, error) {
	source, err := json.Marshal(template)
	if err != nil {
		return engine.Run{}, err
	}
	// On a busy machine the first use of a plugin, which compiles it, may take longer than a server waits.
	for range 5 {
		var run engine.Run
		err = s.call(ctx, http.MethodPost, "/api/runs", map[string]any{"source": string(source), "start": true}, &run)
		if err == nil || !strings.Contains(err.Error(), "deadline exceeded") &&
			!strings.Contains(err.Error(), "still being compiled") {
			return run, err
		}
	}
	return engine.Run{}, err
}

func (s *server) detail(ctx context.Context, id string) (engine.RunDetail, error) {
	var d engine.RunDetail
	err := s.get(ctx, "/api/runs/"+id, &d)
	return d, err
}

// measuring waits until a run measures and operations are counted.
func (s *server) measuring(ctx context.Context, id string) error {
	return s.await(ctx, "the measurement", func() (bool, error) {
		d, err := s.detail(ctx, id)
		if err == nil && d.Status.Terminal() {
			err = fmt.Errorf("the run is %s: %s", d.Status, reason(d))
		}
		return err == nil && d.Phase == engine.PhaseMeasurement && d.Live != nil && d.Live.Ops.Total > 0, err
	})
}

func reason(d engine.RunDetail) string {
	if d.CancellationReason == nil {
		return "no reason"
	}
	return *d.CancellationReason
}

// settled waits for the figures of a run.
func (s *server) settled(ctx context.Context, id string) (engine.RunDetail, error) {
	var d engine.RunDetail
	err := s.await(ctx, "the end of the run", func() (ok bool, err error) {
		d, err = s.detail(ctx, id)
		return d.Status.Terminal() && d.Phase == engine.PhaseNone && d.Summary != nil, err
	})
	return d, err
}

// account says in words how a run ended.
func account(d engine.RunDetail) string {
	a := d.Summary.Accounting
	balanced := "balanced"
	if !a.Balanced {
		balanced = "NOT balanced: " + strings.Join(a.Problems, "; ")
	}
	return fmt.Sprintf("%s, %s, %d operations scheduled, %d started, %d recorded, account %s", d.Status,
		d.Summary.Validity, a.Scheduled, a.Started, a.Recorded, balanced)
}

// used is the processor time that a process takes from here on.
func used(p *process) func() (cpu time.Duration, cores float64) {
	begin := time.Now()
	before, _ := measure.CPU(p.pid())
	return func() (time.Duration, float64) {
		after, _ := measure.CPU(p.pid())
		return after - before, (after - before).Seconds() / time.Since(begin).Seconds()
	}
}

// stopped stops a run and waits for its figures.
func (s *server) stopped(ctx context.Context, id string) (engine.RunDetail, error) {
	if err := s.call(ctx, http.MethodPost, "/api/runs/"+id+"/stop", struct{}{}, nil); err != nil {
		return engine.RunDetail{}, err
	}
	return s.settled(ctx, id)
}
