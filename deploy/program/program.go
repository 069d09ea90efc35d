// Package program runs the program as operators do, in processes of its own, and speaks to its API.
package program

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// StartLimit is what a process gets to be ready, on a machine that has other work.
const StartLimit = 3 * time.Minute

// Process is one command of the program. Its methods are safe for concurrent use.
type Process struct {
	Name string

	cmd   *exec.Cmd
	done  chan struct{}
	ended error // set before done is closed

	mu   sync.Mutex
	text bytes.Buffer
}

// Launch starts the program at path with further variables of the environment. The caller ends it by a signal.
func Launch(path, name string, env []string, args ...string) (*Process, error) {
	// It is ended by signals, and what is run is what the user names.
	p := &Process{Name: name, cmd: exec.Command(path, args...), done: make(chan struct{})}
	p.cmd.Env = append(append(os.Environ(), "LOADSTONE_CALIBRATE=off"), env...)
	p.cmd.Stdout, p.cmd.Stderr = p, p
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the %s: %w", name, err)
	}
	go func() { p.ended = p.cmd.Wait(); close(p.done) }()
	return p, nil
}

// Write keeps what the process prints.
func (p *Process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(b)
}

// Output returns what the process has printed so far.
func (p *Process) Output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// PID returns the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Signal sends a signal to the process.
func (p *Process) Signal(s syscall.Signal) error { return p.cmd.Process.Signal(s) }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for the end of the process, and returns its outcome as exec.Cmd.Wait does.
func (p *Process) Wait() error {
	<-p.done
	return p.ended
}

// Kill ends the process at once.
func (p *Process) Kill() {
	_ = p.Signal(syscall.SIGKILL)
	<-p.done
}

// Gone is an error once the process has ended, with what it printed.
func (p *Process) Gone() error {
	select {
	case <-p.done:
		return fmt.Errorf("the %s has ended: %w: %s", p.Name, p.ended, p.Output())
	default:
		return nil
	}
}

// Until waits until ready is true, for limit at most. what says in the error what was waited for.
func Until(ctx context.Context, limit time.Duration, what string, ready func() (bool, error)) error {
	for end := time.Now().Add(limit); ; {
		ok, err := ready()
		if ok || err != nil {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s: not within %s", what, limit)
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Folder makes a folder that the user that Postgres runs as can enter. Its name begins with prefix.
func Folder(prefix string) (string, error) {
	dir, err := os.MkdirTemp("", prefix)
	if err != nil {
		return "", fmt.Errorf("making a folder: %w", err)
	}
	return dir, os.Chmod(dir, 0o755)
}

// Operator waits for the server on a data directory, and returns how its operator speaks to it.
func Operator(ctx context.Context, server *Process, file string) (*Client, error) {
	var o struct{ Address, Secret string }
	err := Until(ctx, StartLimit, "a server", func() (bool, error) {
		text, err := os.ReadFile(file)
		return err == nil && json.Unmarshal(text, &o) == nil && o.Secret != "", server.Gone()
	})
	return &Client{Base: o.Address, Token: o.Secret}, err
}

// Client speaks to the API of a server.
type Client struct {
	Base string // "http://127.0.0.1:8080"
	// Token is sent as a bearer token, Cookie as the cookie of a session. What is empty is not sent.
	Token, Cookie string
}

// StatusError is an answer that is no success.
type StatusError struct {
	Method, Path string
	Status       int
	Text         string // the body
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("%s %s: %d: %s", e.Method, e.Path, e.Status, e.Text)
}

// Status returns the status of the answer that err stands for: 200 without an error, 0 where there was no answer.
func Status(err error) int {
	var refused *StatusError
	switch {
	case err == nil:
		return http.StatusOK
	case errors.As(err, &refused):
		return refused.Status
	}
	return 0
}

// Do sends in as JSON unless it is nil, and reads the answer into out unless that is nil.
func (c *Client) Do(ctx context.Context, method, path string, in, out any) error {
	text, _, err := c.Send(ctx, method, path, in)
	if err != nil || out == nil {
		return err
	}
	return json.Unmarshal(text, out)
}

// Send is Do for who reads body and headers of the answer.
func (c *Client) Send(ctx context.Context, method, path string, in any) ([]byte, http.Header, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return nil, nil, err
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.Base+path, body)
	if err != nil {
		return nil, nil, err
	}
	if c.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.Token)
	}
	if c.Cookie != "" {
		req.Header.Set("Cookie", c.Cookie)
		req.Header.Set("Origin", c.Base)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, nil, err
	}
	if res.StatusCode >= 300 {
		return nil, nil, &StatusError{method, path, res.StatusCode, strings.TrimSpace(string(text))}
	}
	return text, res.Header, nil
}
