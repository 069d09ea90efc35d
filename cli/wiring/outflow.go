package wiring

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/cli/input"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/liveseries"
	"github.com/loadstone-db/loadstone/engine/meter"
	"github.com/loadstone-db/loadstone/engine/outflow"
	"github.com/loadstone-db/loadstone/engine/outflow/deliver"
	"github.com/loadstone-db/loadstone/engine/outflow/remotewrite"
	"github.com/loadstone-db/loadstone/engine/store"
)

// OutFlags say where the metrics of live runs are sent.
type OutFlags struct {
	RemoteWrite             []string `name:"remote-write" placeholder:"URL" sep:"none" env:"LOADSTONE_REMOTE_WRITE" help:"Send the metrics of live runs to this receiver of Prometheus' remote-write (Prometheus, Mimir, Thanos, VictoriaMetrics, Grafana Cloud). May be repeated (default: none)."`
	RemoteWriteToken        string   `name:"remote-write-token" placeholder:"TOKEN" env:"LOADSTONE_REMOTE_WRITE_TOKEN" help:"Bearer token of the receivers. Other users of this machine can read arguments: better the environment, or --remote-write-token-file."`
	RemoteWriteTokenFile    string   `name:"remote-write-token-file" placeholder:"FILE" env:"LOADSTONE_REMOTE_WRITE_TOKEN_FILE" help:"File with that token."`
	RemoteWriteUser         string   `name:"remote-write-user" placeholder:"NAME" env:"LOADSTONE_REMOTE_WRITE_USER" help:"User of the receivers (basic authentication)."`
	RemoteWritePassword     string   `name:"remote-write-password" placeholder:"PASSWORD" env:"LOADSTONE_REMOTE_WRITE_PASSWORD" help:"That user's password: better the environment, or --remote-write-password-file."`
	RemoteWritePasswordFile string   `name:"remote-write-password-file" placeholder:"FILE" env:"LOADSTONE_REMOTE_WRITE_PASSWORD_FILE" help:"File with that password."`
	RemoteWriteHeaders      string   `name:"remote-write-headers-file" placeholder:"FILE" env:"LOADSTONE_REMOTE_WRITE_HEADERS_FILE" help:"File with headers for the receivers, one NAME: VALUE a line, such as X-Scope-OrgID: team."`
	RemoteWriteCA           string   `name:"remote-write-ca" placeholder:"FILE" env:"LOADSTONE_REMOTE_WRITE_CA" help:"Authorities that the receivers' certificates may be of, in PEM (default: the system's)."`
}

// outLimit is how long the end of the server waits for receivers that do not answer.
const outLimit = 5 * time.Second

// out is what leaves this server.
type out struct {
	feed   *outflow.Feed
	series *liveseries.Series
	closes []func(context.Context)
}

// outlet is a sink with an end and a count.
type outlet interface {
	outflow.Sink
	Close(context.Context)
	Counts() deliver.Counts
}

// openOut begins to send the metrics of live runs, where anybody is named to send them to.
func (s *Services) openOut(f OutFlags) error {
	var sinks []outflow.Sink
	o := &out{}
	all := map[string]func() deliver.Counts{}
	add := func(name string, l outlet) {
		sinks, o.closes = append(sinks, l), append(o.closes, l.Close)
		all[name] = l.Counts
	}
	if len(f.RemoteWrite) > 0 {
		endpoint, err := f.endpoint(s.options.Version)
		if err != nil {
			return err
		}
		for i, url := range f.RemoteWrite {
			endpoint.URL = url
			w, err := remotewrite.Open(endpoint, s.Log)
			if err != nil {
				o.close()
				return err
			}
			name := "remote_write"
			if i > 0 {
				name = fmt.Sprintf("remote_write_%d", i+1)
			}
			add(name, w)
			s.Log.Info().Str("destination", w.To()).Msg("metrics of live runs are sent by remote-write")
		}
	}
	if len(sinks) == 0 {
		return nil
	}
	o.feed = outflow.Start(sinks...)
	o.series = liveseries.Start(liveseries.Options{Run: s.Store.Run, Log: s.Log,
		Target: func(context.Context) (liveseries.Target, error) { return o.feed, nil }})
	s.watched.out.Store(o)
	s.collectors = append(s.collectors, meter.NewOut(all, o.series.Counts))
	s.onClose(func(context.Context) error { o.close(); return nil })
	return nil
}

// A nil *out takes nothing.

func (o *out) tick(t *store.Tick) {
	if o != nil {
		o.series.Tick(t)
	}
}

func (o *out) poll(runID string, epoch int64, p engine.WarehousePoint) {
	if o != nil {
		o.series.Poll(runID, epoch, p)
	}
}

// lost is told of a run that another server carries now.
func (o *out) lost(runID string) {
	if o != nil {
		o.feed.Lost(runID)
	}
}

func (o *out) transition(t store.Transition) {
	if o != nil && t.To.Terminal() {
		o.feed.Ended(t.RunID)
	}
}

// close sends what is there, at the end of the server.
func (o *out) close() {
	if o.series != nil {
		o.series.Close()
		o.feed.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), outLimit)
	defer cancel()
	var all sync.WaitGroup
	for _, end := range o.closes {
		all.Go(func() { end(ctx) })
	}
	all.Wait()
}

const remoteWriteFlag = "--remote-write"

func (f OutFlags) endpoint(version string) (deliver.Endpoint, error) {
	e := deliver.Endpoint{Flag: remoteWriteFlag, User: f.RemoteWriteUser, Agent: "Loadstone/" + version}
	var err error
	if e.Token, err = input.SecretOf("--remote-write-token", f.RemoteWriteToken, f.RemoteWriteTokenFile); err != nil {
		return e, err
	}
	e.Password, err = input.SecretOf("--remote-write-password", f.RemoteWritePassword, f.RemoteWritePasswordFile)
	if err != nil {
		return e, err
	}
	if f.RemoteWriteHeaders != "" {
		text, err := input.Secret("The file of --remote-write-headers-file", f.RemoteWriteHeaders)
		if err != nil {
			return e, err
		}
		if e.Headers, err = headers("--remote-write-headers-file", text); err != nil {
			return e, err
		}
	}
	if f.RemoteWriteCA != "" {
		if e.CA, err = input.Bounded("The file of --remote-write-ca", f.RemoteWriteCA, 1<<20); err != nil {
			return e, err
		}
	}
	return e, nil
}

// headers reads lines of names and values.
func headers(flag, text string) (map[string]string, error) {
	all := map[string]string{}
	for i, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || name == "" || strings.ContainsAny(name, " \t") {
			return nil, engine.InvalidField(flag, fmt.Sprintf("has a line %d that is no header", i+1), "write NAME: VALUE")
		}
		all[name] = value
	}
	return all, nil
}
