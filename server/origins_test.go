package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/server"
	"github.com/loadstone-db/loadstone/server/auth"
)

// TestOriginsThatLookAlike: a page of another origin changes nothing and opens no socket, however near its name is to
// the server's own: by another scheme, port or dot, by what is before and behind the name, and by no origin at all.
func TestOriginsThatLookAlike(t *testing.T) {
	t.Parallel()
	plain := start(t)
	host := strings.TrimPrefix(plain.base, "http://")
	name, port, _ := strings.Cut(host, ":")
	behind := start(t, func(o *server.Options) { o.Proxies, o.Hosts = loopbackProxy(t), hosts(t, "load.example") })
	tls := []string{"X-Forwarded-Proto", "https", "X-Forwarded-Host", "load.example"}
	public := start(t, func(o *server.Options) { o.PublicURL, o.Hosts = "https://load.example", hosts(t, "load.example") })
	foreign := func(own string) []string {
		return []string{"null", "", "https://evil.example", "https://evil-" + own, "https://" + own + ".evil.example",
			"https://evil.example/" + own, "https://evil.example#" + own, "https://" + own + "@evil.example",
			"https://" + own + ".", "https://" + own + ":8443", "https://" + own + ":80", "//" + own, own,
			"http://" + own + ":443", "file://", "data:text/html,x", "blob:https://" + own + "/x",
			"chrome-extension://" + own, "https://" + own + "\u200b", "https://" + strings.ReplaceAll(own, ".", "\u3002")}
	}
	for _, c := range []struct {
		name  string
		b     *bench
		said  []string
		own   []string
		other []string
	}{
		{"plain HTTP", plain, nil, []string{"http://" + host},
			append(foreign(host), "https://"+host, "http://"+name, "http://"+name+":1"+port, "http://"+name+".:"+port,
				"http://localhost:"+port, "http://[::1]:"+port)},
		{"TLS that a stranger claims", plain, tls, []string{"http://" + host},
			append(foreign(host), "https://"+host, "https://load.example")},
		{"a trusted proxy that speaks TLS", behind, tls,
			[]string{"https://load.example", "https://load.example:443", "https://LOAD.example"},
			append(foreign("load.example"), "http://load.example", "https://"+strings.TrimPrefix(behind.base, "http://"),
				behind.base, "https://bench.load.example", "https://example")},
		{"a public address", public, nil, []string{"https://load.example", public.base},
			append(foreign("load.example"), "http://load.example", "https://"+strings.TrimPrefix(public.base, "http://"))},
	} {
		t.Run(c.name, func(t *testing.T) {
			secure := c.said != nil && c.b == behind
			cookie := c.b.session()
			if secure {
				cookie.Name = "__Host-" + auth.CookieName
			}
			with := append([]string{"Authorization", "", "Cookie", cookie.Name + "=" + cookie.Value}, c.said...)
			run := c.b.liveRun()
			try := func(origin string, status, socket int) {
				t.Helper()
				header := append(with[:len(with):len(with)], "Origin", origin)
				if a := c.b.do("POST", "/api/auth/tokens", map[string]any{"name": "x"}, header...); a.StatusCode != status {
					t.Errorf("a change from %q: status %d, want %d", origin, a.StatusCode, status)
				}
				// A browser says so of a page of the server's own alone, and cannot be had to say it of another.
				conn, res, err := c.b.dial("/ws/runs/"+run, header...)
				if res == nil || res.StatusCode != socket {
					t.Errorf("a socket from %q: %v, %v, want %d", origin, res, err, socket)
				}
				if conn != nil {
					_ = conn.Close()
				}
			}
			for _, origin := range c.own {
				try(origin, http.StatusCreated, http.StatusSwitchingProtocols)
			}
			for _, origin := range c.other {
				if origin == "" { // no browser's page
					continue
				}
				try(origin, http.StatusForbidden, http.StatusForbidden)
			}
		})
	}
}
