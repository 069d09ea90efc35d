// Package connector brings rows into streams and out of them: files and sockets, CSV and lines of JSON. What comes in
// is not trusted: lines are bounded, rows that do not fit their schema are left out and counted, and files lie in one
// folder, without links.
package connector

import (
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/loadstone-db/loadstone/engine/base/egress"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

// setting is one that a type of source or sink has.
type setting struct {
	path         string
	defaultValue any // nil: it has to be given
	// unsaid: a source or sink does not show it, nor keep it, unless it is given. It is false then.
	unsaid bool
	// later: sources and sinks of earlier versions do not have it, and are as if it were false.
	later bool
	// check returns what is wrong with a value, or nothing. The value has the type of the standard; text where that
	// is nil.
	check func(v any) string
}

// Types of sources and sinks.
const (
	File  = "FILE"
	TCP   = "TCP"
	Print = "PRINT"
	// System is what the product tells about itself.
	System = "SYSTEM"
	// Webhook posts rows to an address; Guardrail stops the run that a row names.
	Webhook   = "WEBHOOK"
	Guardrail = "GUARDRAIL"
	// Metric tells the newest rows as gauges of the server.
	Metric = "METRIC"
	// Postgres writes rows into a table of a saved connection.
	Postgres = "POSTGRES"
)

// The streams of the product.
const (
	WorkerStatistics = "worker_statistics"
	WorkerResources  = "worker_resources"
	Heartbeats       = "heartbeats"
	Warehouse        = "warehouse"
	RunEvents        = "run_events"
	// KindStatistics and StatementStatistics are WorkerStatistics by kind and by statement.
	KindStatistics      = "kind_statistics"
	StatementStatistics = "statement_statistics"
	// Executions are all single ones.
	Executions = "executions"
)

// Streams are all of them.
var Streams = [...]string{WorkerStatistics, WorkerResources, Heartbeats, Warehouse, RunEvents, KindStatistics,
	StatementStatistics, Executions}

// PerNode reports whether each node tells a stream of itself. The others are told where the server of a run has them.
func PerNode(stream string) bool { return stream == Executions || stream == StatementStatistics }

// SourceTypes and SinkTypes are all that there are.
var (
	SourceTypes = []string{File, TCP, System}
	SinkTypes   = []string{File, Print, Postgres, Webhook, Guardrail, Metric}
)

// Keywords are the types of sources and sinks and the paths of their settings, each once and in the order of the
// alphabet: what an editor of statements offers.
func Keywords() []string {
	words := slices.Concat(SourceTypes, SinkTypes)
	for _, of := range settings {
		for _, s := range of {
			words = append(words, s.path)
		}
	}
	slices.Sort(words)
	return slices.Compact(words)
}

func notEmpty(v any) string {
	if s := v.(string); s == "" || len(s) > 4096 {
		return "is a text of 1 to 4096 bytes"
	}
	return ""
}

func inFolder(v any) string {
	if why := notEmpty(v); why != "" {
		return why
	}
	return outsideReason(v.(string))
}

func format(v any) string {
	if s := strings.ToUpper(v.(string)); s != "CSV" && s != "JSON" {
		return "is CSV or JSON"
	}
	return ""
}

func oneByte(v any) string {
	if s := v.(string); len(s) != 1 || s == `"` {
		return "is one byte, and no quote"
	}
	return ""
}

func streamName(v any) string {
	if !slices.Contains(Streams[:], v.(string)) {
		return "is one of " + strings.Join(Streams[:], ", ")
	}
	return ""
}

func address(v any) string {
	if !IsAddress(v.(string)) {
		return "is http://HOST/PATH or https://HOST/PATH"
	}
	return CheckHost(v.(string))
}

// host refuses what is not dialled, whatever a list says, where it is written.
func host(v any) string {
	switch name := v.(string); {
	case name == "":
		return notEmpty(v)
	case egress.IsForbiddenHost(name):
		return "leads to an address of the link, or one where a cloud tells a machine its own keys: connections to it " +
			"are refused"
	}
	return ""
}

// metricName is the end of a metric's name.
func metricName(v any) string {
	if s := v.(string); s == "" || len(s) > 100 || s[0] < 'a' || s[0] > 'z' ||
		strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
		return "begins with a small letter and has 1 to 100 small letters, digits and _"
	}
	return ""
}

// IsAddress reports whether text is the address of something that rows can be posted to.
func IsAddress(text string) bool {
	at, err := url.Parse(text)
	return err == nil && at.Hostname() != "" && (at.Scheme == "http" || at.Scheme == "https") && at.User == nil
}

// CheckHost says why the host of such an address is not dialled, whatever a list says, as far as its spelling tells;
// empty where it is.
func CheckHost(address string) string {
	if at, err := url.Parse(address); err == nil {
		return host(at.Hostname())
	}
	return ""
}

// Origin is the scheme and the host of an address, which may be shown to whoever reads: what follows them may be a
// secret.
func Origin(address string) string {
	at, err := url.Parse(address)
	if err != nil || at.Host == "" {
		return ""
	}
	return at.Scheme + "://" + at.Host
}

// IsSecret reports whether the setting of a path is kept sealed and shown to nobody.
func IsSecret(path string) bool { return path == "SINK.URL" }

// Masked is a setting as it is shown to readers.
func Masked(path string, value any) string {
	text := fmt.Sprint(value)
	if IsSecret(path) {
		return Origin(text) + "/…"
	}
	return text
}

func between(least, most int64) func(any) string {
	return func(v any) string {
		if n := v.(int64); n < least || n > most {
			return fmt.Sprintf("is between %d and %d", least, most)
		}
		return ""
	}
}

func anyValue(any) string { return "" }

var parser = []setting{
	{path: "PARSER.TYPE", check: format},
	{path: "PARSER.TUPLE_DELIMITER", defaultValue: "\n", check: oneByte},
	{path: "PARSER.FIELD_DELIMITER", defaultValue: ",", check: oneByte},
	{path: "PARSER.HEADER", defaultValue: false, check: anyValue},
	{path: "SOURCE.BATCH_ROWS", defaultValue: int64(1024), check: between(1, 65536)},
}

var settings = map[string][]setting{
	"source " + File: append([]setting{{path: "SOURCE.FILE_PATH", check: inFolder},
		{path: "SOURCE.FOLLOW", defaultValue: false, unsaid: true, check: anyValue}}, parser...),
	"source " + TCP: append([]setting{{path: "SOURCE.SOCKET_HOST", check: host},
		{path: "SOURCE.SOCKET_PORT", defaultValue: int64(0), check: between(1, 65535)},
		{path: "SOURCE.RECONNECT", defaultValue: true, later: true, check: anyValue}}, parser...),
	"source " + System: {{path: "SOURCE.STREAM", check: streamName}},
	"sink " + File: {
		{path: "SINK.FILE_PATH", check: inFolder},
		{
			path:         "SINK.INPUT_FORMAT",
			defaultValue: "CSV",
			check:        format,
		},
		{path: "SINK.APPEND", defaultValue: false, check: anyValue},
	},
	"sink " + Print:   {{path: "SINK.INPUT_FORMAT", defaultValue: "CSV", check: format}},
	"sink " + Webhook: {{path: "SINK.URL", check: address}},
	"sink " + Postgres: {{path: "SINK.CONNECTION", check: notEmpty}, {path: "SINK.TABLE", check: notEmpty},
		{path: "SINK.SCHEMA", defaultValue: "", check: anyValue}},
	"sink " + Guardrail: {{path: "SINK.RUN_ID", defaultValue: "", check: anyValue}},
	"sink " + Metric: {{path: "SINK.METRIC", check: metricName}, {path: "SINK.SERIES", defaultValue: int64(1000),
		check: between(1, 10_000)}},
}

// Config is what a source or sink was made with, all settings by their path.
type Config map[string]any

// String is a setting that is a text.
func (c Config) String(path string) string { s, _ := c[path].(string); return s }

// Int is a setting that is a whole number.
func (c Config) Int(path string) int64 { n, _ := c[path].(int64); return n }

// Bool is a setting that is true or false.
func (c Config) Bool(path string) bool { b, _ := c[path].(bool); return b }

// SourceConfig checks the settings of a source; the error is an InvalidConfig.
func SourceConfig(kind, source string, at int, given []sql.Setting) (Config, error) {
	return config("source "+kind, source, at, given)
}

// SinkConfig checks the settings of a sink; the error is an InvalidConfig.
func SinkConfig(kind, source string, at int, given []sql.Setting) (Config, error) {
	return config("sink "+kind, source, at, given)
}

// SameSource reports whether a source that is there is what a statement with some settings would make. What an earlier
// version has not kept of it is false, and is the same where the statement does not say it.
func SameSource(kind string, there, made Config, given []sql.Setting) bool {
	is := maps.Clone(there)
	for _, s := range settings["source "+kind] {
		_, kept := is[s.path]
		v, has := made[s.path]
		if kept || !has || !s.later && !s.unsaid {
			continue
		}
		if said := slices.ContainsFunc(given, func(g sql.Setting) bool { return g.Path == s.path }); !said || v == false {
			is[s.path] = v
		}
	}
	return reflect.DeepEqual(is, made)
}

func config(kind, source string, at int, given []sql.Setting) (Config, error) {
	wrong := func(at int, hint, format string, args ...any) error {
		return sql.Errorf(sql.InvalidConfig, source, at, hint, format, args...)
	}
	known := settings[kind]
	var paths []string
	for _, s := range known {
		paths = append(paths, s.path)
	}
	c := Config{}
	for _, g := range given {
		i := slices.Index(paths, g.Path)
		if i < 0 {
			hint := sql.Suggest(g.Path, paths...)
			if hint == "" {
				hint = "there are " + strings.Join(paths, ", ")
			}
			return nil, wrong(g.At, hint, "a %s has no setting %s", kind, g.Path)
		}
		if _, twice := c[g.Path]; twice {
			return nil, wrong(g.At, "", "%s is given twice", g.Path)
		}
		s := known[i]
		want := s.defaultValue
		if want == nil {
			want = ""
		}
		if fmt.Sprintf("%T", g.Value) != fmt.Sprintf("%T", want) {
			kinds := map[string]string{"string": "a text", "int64": "a whole number", "bool": "TRUE or FALSE"}
			return nil, wrong(g.At, "", "%s is %s", g.Path, kinds[fmt.Sprintf("%T", want)])
		}
		if what := s.check(g.Value); what != "" {
			return nil, wrong(g.At, "", "%s %s", g.Path, what)
		}
		c[g.Path] = g.Value
	}
	for _, s := range known {
		if _, ok := c[s.path]; ok || s.unsaid {
			continue
		}
		if s.defaultValue == nil || s.check(s.defaultValue) != "" {
			return nil, wrong(at, "SET('…' AS "+s.path+")", "a %s needs the setting %s", kind, s.path)
		}
		c[s.path] = s.defaultValue
	}
	const row, field = "PARSER.TUPLE_DELIMITER", "PARSER.FIELD_DELIMITER"
	if one, is := c[row]; is && one == c[field] && !strings.EqualFold(c.String("PARSER.TYPE"), "JSON") {
		return nil, wrong(at, "", "%s and %s are the same", row, field)
	}
	return c, nil
}
