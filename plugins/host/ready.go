package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// compilation is one that is under way, for all who wait for it.
type compilation struct {
	since time.Time
	done  chan struct{} // closed at its end
	err   error         // set before
}

// ready compiles a plugin that was only enlisted. It is compiled once, whoever asks for it and
// however long they can wait: one who cannot is told so, and the next finds it further on.
func (r *registered) ready(ctx context.Context) error {
	r.making.Lock()
	if r.module != nil {
		r.making.Unlock()
		return nil
	}
	c := r.under
	if c == nil {
		if !r.host.beginCompilation() {
			r.making.Unlock()
			return errors.New("compiling a plugin: the host is closed")
		}
		c = &compilation{since: time.Now(), done: make(chan struct{})}
		r.under = c
		go r.compile(c)
	}
	r.making.Unlock()
	select {
	case <-c.done:
		return c.err
	default:
	}
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
	}
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return ctx.Err()
	}
	return &engine.Error{Code: engine.CodeUnavailable, Message: fmt.Sprintf(
		"The plugin %s %s is still being compiled, for %.0f s so far.", r.info.Name, r.info.Version,
		time.Since(c.since).Seconds()),
		Hint: "ask again a little later: it is compiled once, and goes on meanwhile", Cause: ctx.Err()}
}

// beginCompilation counts a compilation that begins, unless the host is closed.
func (h *Host) beginCompilation() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	h.making.Add(1)
	return true
}

// compile compiles the plugin and ends c. The one that failed is tried anew by the next who asks.
func (r *registered) compile(c *compilation) {
	defer r.host.making.Done()
	module, err := r.compiled(r.host.life)
	r.making.Lock()
	defer r.making.Unlock()
	if r.under, c.err = nil, err; err == nil {
		r.use(module)
		r.wasm = nil
	}
	close(c.done)
}

// compiled is the plugin's compiled module, which was approved before or is judged now.
func (r *registered) compiled(ctx context.Context) (*compiled, error) {
	if c := r.host.approved(ctx, r.info.SHA256); c != nil {
		// Who it is was asked before it was approved.
		c.name = r.info.Name + " " + r.info.Version
		return c, nil
	}
	wasm, err := r.wasm()
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(wasm)
	if hex.EncodeToString(sum[:]) != r.info.SHA256 {
		return nil, refuse("its bytes are not those that %s %s was known by", r.info.Name, r.info.Version)
	}
	loaded, err := r.host.load(ctx, wasm, r.info.SHA256)
	if err != nil {
		return nil, err
	}
	return loaded.module, nil
}

// use gives the plugin its compiled module.
func (r *registered) use(c *compiled) {
	r.module = c
	r.samples.owner, r.samples.host = r, r.host
	r.pool.module, r.pool.host = c, r.host
}

// release frees the compiled module, if there is one.
func (r *registered) release(ctx context.Context) error {
	r.making.Lock()
	defer r.making.Unlock()
	if r.module == nil {
		return nil
	}
	return r.module.code.Close(ctx)
}
