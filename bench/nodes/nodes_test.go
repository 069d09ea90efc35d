package main

import (
	"math"
	"net"
	"testing"
	"time"
)

func TestMetrics(t *testing.T) {
	before := parseMetrics("# HELP x y\nx_bucket{le=\"0.1\"} 1\nx_bucket{le=\"0.2\"} 1\nx_bucket{le=\"+Inf\"} 1\nn 2\n")
	after := parseMetrics("x_bucket{le=\"0.1\"} 90\nx_bucket{le=\"0.2\"} 100\nx_bucket{le=\"+Inf\"} 101\nn 3.5\n")
	b := after.since(before, "x")
	if len(b) != 3 || atMost(b, 0.5) != 0.1 || atMost(b, 0.95) != 0.2 || !math.IsInf(atMost(b, 1), 1) ||
		after.value("n") != 3.5 {
		t.Errorf("%v of %v", b, after)
	}
	if !math.IsNaN(atMost(before.since(before, "x"), 0.5)) {
		t.Error("a quantile of nothing")
	}
}

// TestTheProxyIsANetwork: it passes, swallows and resets.
func TestTheProxyIsANetwork(t *testing.T) {
	echo, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = echo.Close() }()
	go func() {
		for {
			c, err := echo.Accept()
			if err != nil {
				return
			}
			go func() {
				buf := make([]byte, 16)
				for {
					n, err := c.Read(buf)
					if err != nil {
						return
					}
					_, _ = c.Write(buf[:n])
				}
			}()
		}
	}()
	p, err := newProxy(t.Context(), echo.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", p.address())
	if err != nil {
		t.Fatal(err)
	}
	answer := func(within time.Duration) (string, error) {
		_ = c.SetReadDeadline(time.Now().Add(within))
		buf := make([]byte, 16)
		n, err := c.Read(buf)
		return string(buf[:n]), err
	}
	say := func(text string) { _, _ = c.Write([]byte(text)) }
	say("a")
	if got, err := answer(time.Minute); got != "a" {
		t.Fatalf("%q, %v", got, err)
	}
	p.swallow(true)
	say("b")
	if got, err := answer(100 * time.Millisecond); err == nil {
		t.Fatalf("%q came through a hole", got)
	}
	p.swallow(false)
	if got, err := answer(time.Minute); got != "b" {
		t.Fatalf("%q, %v", got, err)
	}
	p.reset()
	if got, err := answer(time.Minute); err == nil {
		t.Fatalf("%q after a reset", got)
	}
}
