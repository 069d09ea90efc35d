package wiring

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/ingest"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/outbound/delivery"
	"github.com/loadstone-db/loadstone/engine/outbound/metricpush"
	"github.com/loadstone-db/loadstone/engine/outbound/metrics"
	"github.com/loadstone-db/loadstone/engine/outbound/notify"
	"github.com/loadstone-db/loadstone/engine/outbound/otlp"
	"github.com/loadstone-db/loadstone/engine/store"
)

// ExportFlags say where the metrics of live runs are sent.
type ExportFlags struct {
	RemoteWrite             []string `name:"remote-write" placeholder:"URL" sep:"none" env:"LOADSTONE_REMOTE_WRITE" help:"Send metrics of live runs to this remote-write receiver. Repeatable (default: none)."`
	RemoteWriteToken        string   `name:"remote-write-token" placeholder:"TOKEN" env:"LOADSTONE_REMOTE_WRITE_TOKEN" help:"Bearer token of the receivers: prefer the environment or --remote-write-token-file."`
	RemoteWriteTokenFile    string   `name:"remote-write-token-file" placeholder:"FILE" env:"LOADSTONE_REMOTE_WRITE_TOKEN_FILE" help:"File with the token."`
	RemoteWriteUser         string   `name:"remote-write-user" placeholder:"NAME" env:"LOADSTONE_REMOTE_WRITE_USER" help:"User for basic authentication."`
	RemoteWritePassword     string   `name:"remote-write-password" placeholder:"PASSWORD" env:"LOADSTONE_REMOTE_WRITE_PASSWORD" help:"Password: prefer the environment or --remote-write-password-file."`
	RemoteWritePasswordFile string   `name:"remote-write-password-file" placeholder:"FILE" env:"LOADSTONE_REMOTE_WRITE_PASSWORD_FILE" help:"File with the password."`
	RemoteWriteHeaders      string   `name:"remote-write-headers-file" placeholder:"FILE" env:"LOADSTONE_REMOTE_WRITE_HEADERS_FILE" help:"File with headers, one NAME: VALUE a line, such as X-Scope-OrgID: team."`
	RemoteWriteCA           string   `name:"remote-write-ca" placeholder:"FILE" env:"LOADSTONE_REMOTE_WRITE_CA" help:"PEM file of the receivers' certificate authorities (default: the system's)."`
	OTLPMetrics             string   `name:"otlp-metrics" placeholder:"URL" env:"LOADSTONE_OTLP_METRICS" help:"Send metrics of live runs by OTLP over HTTP: http://HOST:4318. OTEL_EXPORTER_OTLP_[METRICS_]HEADERS and _CERTIFICATE apply (default: none)."`
	GrafanaURL              string   `name:"grafana-url" placeholder:"URL" env:"LOADSTONE_GRAFANA_URL" help:"Write annotations for runs and phases to this Grafana (default: none)."`
	GrafanaToken            string   `name:"grafana-token" placeholder:"TOKEN" env:"LOADSTONE_GRAFANA_TOKEN" help:"Grafana service-account token: prefer the environment or --grafana-token-file."`
	GrafanaTokenFile        string   `name:"grafana-token-file" placeholder:"FILE" env:"LOADSTONE_GRAFANA_TOKEN_FILE" help:"File with the token."`
}

// exportCloseTimeout is how long the end of the server waits for receivers that do not answer.
const exportCloseTimeout = 5 * time.Second

// telemetryExport is what leaves this server.
type telemetryExport struct {
	feed   *metricpush.Pusher // nil where no metrics are sent
	series *ingest.LiveWriter // that makes them
	marks  *notify.Annotator  // nil where nothing is marked
	closes []func(context.Context)
	counts map[string]func() delivery.Counts
	// sinks are the same in their order.
	sinks []delivery.NamedSink
}

// telemetrySink has an end and a count.
type telemetrySink interface {
	To() string
	Close(context.Context)
	Counts() delivery.Counts
}

func (o *telemetryExport) add(name string, l telemetrySink, log zerolog.Logger) {
	o.closes, o.counts[name] = append(o.closes, l.Close), l.Counts
	o.sinks = append(o.sinks, delivery.NamedSink{Name: name, To: l.To(), Counts: l.Counts})
	log.Info().Str("kind", name).Str("destination", l.To()).Msg("what happens to runs is sent to another system too")
}

// Destinations are the systems that what happens to runs is sent to.
func (s *Services) Destinations() []delivery.NamedSink {
	if o := s.watched.export.Load(); o != nil {
		return o.sinks
	}
	return nil
}

// openTelemetryExport begins to send what happens to runs, where anybody is named to send it to.
func (s *Services) openTelemetryExport(f ExportFlags) (err error) {
	o := &telemetryExport{counts: map[string]func() delivery.Counts{}}
	defer func() {
		if err != nil {
			o.close()
		}
	}()
	sinks, err := s.openSinks(f, o)
	if err != nil {
		return err
	}
	if f.GrafanaURL != "" {
		e := delivery.Endpoint{
			Flag:      "--grafana-url",
			URL:       secret.New(f.GrafanaURL),
			UserAgent: "Loadstone/" + s.options.Version,
			Egress:    s.reachable,
		}
		token, err := terminal.SecretFlag("--grafana-token", f.GrafanaToken, f.GrafanaTokenFile)
		if err != nil {
			return err
		}
		e.Token = secret.New(token)
		if o.marks, err = notify.Open(e, s.Store.Run, s.Log); err != nil {
			return err
		}
		o.add("grafana", o.marks, s.Log)
	}
	if len(o.counts) == 0 {
		return nil
	}
	if len(sinks) > 0 {
		o.feed = metricpush.Start(sinks...)
		o.series = ingest.StartLive(ingest.LiveOptions{Run: s.Store.Run, Log: s.Log, PerHour: s.warehouseRate,
			Target: func(context.Context) (ingest.LiveTarget, error) { return o.feed, nil }})
	}
	s.watched.export.Store(o)
	s.collectors = append(s.collectors, metrics.NewExport(o.counts, o.series.Counts))
	s.onClose(func(context.Context) error { o.close(); return nil })
	return nil
}

func (s *Services) openSinks(f ExportFlags, o *telemetryExport) (sinks []metricpush.Sink, err error) {
	if len(f.RemoteWrite) > 0 {
		endpoint, err := f.endpoint(s.options.Version)
		endpoint.Egress = s.reachable
		if err != nil {
			return nil, err
		}
		for i, at := range f.RemoteWrite {
			endpoint.URL = secret.New(at)
			w, err := metricpush.OpenRemoteWrite(endpoint, s.Log)
			if err != nil {
				return nil, err
			}
			name := "remote_write"
			if i > 0 {
				name = fmt.Sprintf("remote_write_%d", i+1)
			}
			o.add(name, w, s.Log)
			sinks = append(sinks, w)
		}
	}
	if f.OTLPMetrics != "" {
		e := delivery.Endpoint{
			Flag:      "--otlp-metrics",
			URL:       secret.New(f.OTLPMetrics),
			UserAgent: "Loadstone/" + s.options.Version,
			Egress:    s.reachable,
		}
		if e.Headers, err = otlpHeaders(otlpVariable("HEADERS")); err != nil {
			return nil, err
		}
		if file := otlpVariable("CERTIFICATE"); file != "" {
			if e.CA, err = terminal.ReadBounded("The file of OTEL_EXPORTER_OTLP_CERTIFICATE", file, 1<<20); err != nil {
				return nil, err
			}
		}
		sender, err := otlp.OpenMetrics(e, s.owner, s.options.Version, s.Log)
		if err != nil {
			return nil, err
		}
		o.add("otlp", sender, s.Log)
		sinks = append(sinks, sender)
	}
	return sinks, nil
}

// otlpVariable is what the environment says of all that is sent to a collector, or of metrics alone.
func otlpVariable(name string) string {
	return cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_METRICS_"+name), os.Getenv("OTEL_EXPORTER_OTLP_"+name))
}

// otlpHeaders reads headers as OpenTelemetry writes them: name=value,name=value, percent-encoded.
func otlpHeaders(text string) (map[string]secret.Secret, error) {
	all := map[string]secret.Secret{}
	for pair := range strings.SplitSeq(text, ",") {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if name = strings.TrimSpace(name); !ok || name == "" || err != nil {
			return nil, engine.InvalidField("OTEL_EXPORTER_OTLP_HEADERS", "is no list of headers",
				"write name=value,name=value")
		}
		all[name] = secret.New(value)
	}
	return all, nil
}

// A nil *out takes nothing.

func (o *telemetryExport) tick(t *store.Tick) {
	if o != nil {
		o.series.Tick(t)
	}
}

func (o *telemetryExport) poll(runID string, epoch int64, p engine.WarehousePoint) {
	if o != nil {
		o.series.Poll(runID, epoch, p)
	}
}

// runTakenOver is told of a run that another server carries now.
func (o *telemetryExport) runTakenOver(runID string) {
	if o != nil && o.feed != nil {
		o.feed.Lost(runID)
	}
}

// transition is told of what the control store has taken.
func (o *telemetryExport) transition(t store.Transition) {
	if o == nil {
		return
	}
	if t.To.Terminal() && o.feed != nil {
		o.feed.Ended(t.RunID)
	}
	if o.marks == nil {
		return
	}
	if t.To == engine.StatusRunning && !t.StartTime.IsZero() {
		o.marks.Record(t.RunID, notify.Started)
	}
	if !t.WarmupEndTime.IsZero() {
		o.marks.Record(t.RunID, notify.WarmedUp)
	}
	if t.To.Terminal() {
		o.marks.Record(t.RunID, notify.Ended)
	}
}

// close sends what is there, at the end of the server.
func (o *telemetryExport) close() {
	if o.feed != nil {
		o.series.Close()
		o.feed.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), exportCloseTimeout)
	defer cancel()
	var all sync.WaitGroup
	for _, end := range o.closes {
		all.Go(func() { end(ctx) })
	}
	all.Wait()
}

const remoteWriteFlag = "--remote-write"

func (f ExportFlags) endpoint(version string) (delivery.Endpoint, error) {
	e := delivery.Endpoint{Flag: remoteWriteFlag, User: f.RemoteWriteUser, UserAgent: "Loadstone/" + version}
	token, err := terminal.SecretFlag("--remote-write-token", f.RemoteWriteToken, f.RemoteWriteTokenFile)
	if err != nil {
		return e, err
	}
	password, err := terminal.SecretFlag("--remote-write-password", f.RemoteWritePassword, f.RemoteWritePasswordFile)
	if err != nil {
		return e, err
	}
	e.Token, e.Password = secret.New(token), secret.New(password)
	if f.RemoteWriteHeaders != "" {
		text, err := terminal.ReadSecret("The file of --remote-write-headers-file", f.RemoteWriteHeaders)
		if err != nil {
			return e, err
		}
		if e.Headers, err = headers("--remote-write-headers-file", text); err != nil {
			return e, err
		}
	}
	if f.RemoteWriteCA != "" {
		if e.CA, err = terminal.ReadBounded("The file of --remote-write-ca", f.RemoteWriteCA, 1<<20); err != nil {
			return e, err
		}
	}
	return e, nil
}

// headers reads lines of names and values.
func headers(flag, text string) (map[string]secret.Secret, error) {
	all := map[string]secret.Secret{}
	for i, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || name == "" || strings.ContainsAny(name, " \t") {
			return nil, engine.InvalidField(flag, fmt.Sprintf("has a line %d that is no header", i+1), "write NAME: VALUE")
		}
		all[name] = secret.New(value)
	}
	return all, nil
}
