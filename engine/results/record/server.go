package record

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"github.com/loadstone-db/loadstone/engine"
)

// KindServer is engine.Artifact.Kind of parts that hold what the server of the target was seen to do during a run.
const KindServer = "server"

// serverVersion is parquet_schema_version of server parts.
const serverVersion = 1

// serverPrefix begins the names of server parts.
const serverPrefix = "server-"

// What a row of a server part is.
const (
	serverLook    = "look"
	serverSession = "session"
	serverCounter = "counter"
	serverEvent   = "event"
	serverFact    = "fact"
	serverAdvice  = "advice"
	serverMissing = "missing"
)

// serverRow is the schema of a server part: what is known of the server, looks, each followed by its sessions, counters
// and events. What does not apply to a row is empty or 0.
type serverRow struct {
	At                 int64   `parquet:"at,timestamp(millisecond),delta"`
	What               string  `parquet:"what,dict"`
	Session            string  `parquet:"session,dict"`
	Ours               bool    `parquet:"ours"`
	State              string  `parquet:"state,dict"`
	Class              string  `parquet:"class,dict"`
	Event              string  `parquet:"event,dict"`
	Scope              string  `parquet:"scope,dict"`
	StatementID        string  `parquet:"statement_id,dict"`
	Text               string  `parquet:"text,dict"`
	Alters             bool    `parquet:"alters"`
	Application        string  `parquet:"application,dict"`
	User               string  `parquet:"user_name,dict"`
	BlockedBy          string  `parquet:"blocked_by,dict"`
	TransactionSeconds float32 `parquet:"transaction_seconds"`
	// Name, Object and Value are of counters; Name is the kind of an event. Value of a look is how long it took, in ms.
	Name   string  `parquet:"name,dict"`
	Object string  `parquet:"object,dict"`
	Value  float64 `parquet:"value"`
	// Idle and OtherIdle are of a look.
	Idle      int32 `parquet:"idle,dict"`
	OtherIdle int32 `parquet:"other_idle,dict"`
}

// ServerWriter writes one server part. One goroutine at a time uses it; its memory is one row group.
type ServerWriter struct {
	path, runID string
	f           *os.File
	sum         hash.Hash
	size        int64
	pq          *parquet.GenericWriter[serverRow]
	rows        int64
	min, max    int64
	batch       []serverRow
}

// serverGroupRows bounds the memory of a writer.
const serverGroupRows = 32 << 10

// ServerName is the file name of a numbered part that was written in an epoch of its run: two servers that carry a run
// one after the other write different ones.
func ServerName(epoch int64, number int) string {
	return fmt.Sprintf("%s%05d-%05d%s", serverPrefix, epoch, number, extension)
}

// IsServerPart tells the files that hold what a server was seen to do.
func IsServerPart(name string) bool { return strings.HasPrefix(name, serverPrefix) }

// NewServerWriter begins a part of a run in dir, which is made when absent.
func NewServerWriter(dir, runID, name string) (*ServerWriter, error) {
	if !ValidName(runID) {
		return nil, fmt.Errorf("writing what the server does: run id %q cannot be used in a file name", runID)
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, DiskError(dir, err)
	}
	w := &ServerWriter{path: filepath.Join(dir, name), runID: runID, sum: sha256.New()}
	f, err := os.OpenFile(w.path+unfinishedSuffix, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o640)
	if err != nil {
		return nil, DiskError(dir, err)
	}
	w.f = f
	w.pq = parquet.NewGenericWriter[serverRow](w, parquet.CreatedBy("loadstone", "", ""),
		parquet.MaxRowsPerRowGroup(serverGroupRows), parquet.Compression(&zstd.Codec{Level: zstd.SpeedFastest}))
	return w, nil
}

// Write implements io.Writer for the encoder.
func (w *ServerWriter) Write(b []byte) (int, error) {
	n, err := w.f.Write(b)
	w.sum.Write(b[:n])
	w.size += int64(n)
	return n, err
}

func (w *ServerWriter) add(r serverRow) {
	if w.rows == 0 || r.At < w.min {
		w.min = r.At
	}
	w.max = max(w.max, r.At)
	w.rows++
	w.batch = append(w.batch, r)
}

// Look appends one look with its sessions.
func (w *ServerWriter) Look(l engine.ServerLook) error {
	at := l.At.UnixMilli()
	w.add(serverRow{At: at, What: serverLook, Value: l.TookMs, Idle: int32(l.Idle), OtherIdle: int32(l.OtherIdle)})
	for i := range l.Sessions {
		s := &l.Sessions[i]
		w.add(serverRow{At: at, What: serverSession, Session: s.Session, Ours: s.Ours, State: string(s.State),
			Class: string(s.Class), Event: s.Event, Scope: s.Scope, StatementID: s.StatementID, Text: s.Text, Alters: s.Alters,
			Application: s.Application, User: s.User, BlockedBy: strings.Join(s.BlockedBy, ","),
			TransactionSeconds: float32(s.TransactionSeconds)})
	}
	return w.flush(enrichmentBatch)
}

// Counters appends numbers of the server.
func (w *ServerWriter) Counters(at time.Time, list []engine.ServerCounter) error {
	for _, c := range list {
		w.add(serverRow{At: at.UnixMilli(), What: serverCounter, Name: c.Name, Object: c.Object, Value: c.Value})
	}
	return w.flush(enrichmentBatch)
}

// Event appends something that happened.
func (w *ServerWriter) Event(e engine.ServerEvent) error {
	w.add(serverRow{At: e.At.UnixMilli(), What: serverEvent, Name: e.Kind, Text: e.Text, StatementID: e.StatementID})
	return w.flush(enrichmentBatch)
}

// Facts appends what is known of the server. It comes first, so that each part can be read by itself.
func (w *ServerWriter) Facts(at time.Time, f engine.ServerFacts) error {
	ms := at.UnixMilli()
	for _, list := range []struct {
		what string
		of   map[string]string
	}{{serverFact, f.Facts}, {serverAdvice, f.Advice}} {
		for _, name := range slices.Sorted(maps.Keys(list.of)) {
			w.add(serverRow{At: ms, What: list.what, Name: name, Text: list.of[name]})
		}
	}
	for _, text := range f.Missing {
		w.add(serverRow{At: ms, What: serverMissing, Text: text})
	}
	return w.flush(enrichmentBatch)
}

func (w *ServerWriter) flush(least int) error {
	if len(w.batch) < least {
		return nil
	}
	_, err := w.pq.Write(w.batch)
	w.batch = w.batch[:0]
	if err != nil {
		return DiskError(filepath.Dir(w.path), err)
	}
	return nil
}

// Size is how many bytes were written so far.
func (w *ServerWriter) Size() int64 { return w.size }

// Rows is how many rows were added.
func (w *ServerWriter) Rows() int64 { return w.rows }

// Abandon removes what was written.
func (w *ServerWriter) Abandon() {
	_ = w.f.Close()
	_ = os.Remove(w.path + unfinishedSuffix)
}

// Finish makes the part durable and returns it with its path. The writer cannot be used any more.
func (w *ServerWriter) Finish() (engine.Artifact, string, error) {
	a := engine.Artifact{ArtifactID: uuid.NewString(), RunID: w.runID, ResultID: w.runID, Kind: KindServer,
		Name: filepath.Base(w.path), RowCount: w.rows,
		MinTime: engine.At(time.UnixMilli(w.min)), MaxTime: engine.At(time.UnixMilli(w.max)),
		SchemaVersion: serverVersion, CreatedAt: engine.At(time.Now())}
	w.pq.SetKeyValueMetadata(metaArtifactID, a.ArtifactID)
	w.pq.SetKeyValueMetadata(metaRunID, a.RunID)
	w.pq.SetKeyValueMetadata(metaSchemaVersion, strconv.Itoa(serverVersion))
	w.pq.SetKeyValueMetadata(metaCreatedAt, a.CreatedAt.Format(time.RFC3339Nano))
	err := w.flush(1)
	if err == nil {
		err = errors.Join(w.pq.Close(), w.f.Sync())
	}
	if err = errors.Join(err, w.f.Close()); err == nil {
		if err = os.Rename(w.path+unfinishedSuffix, w.path); err == nil {
			err = SyncDir(filepath.Dir(w.path))
		}
	}
	if err != nil {
		_ = os.Remove(w.path + unfinishedSuffix)
		return a, "", DiskError(filepath.Dir(w.path), err)
	}
	a.SizeBytes, a.SHA256 = w.size, hex.EncodeToString(w.sum.Sum(nil))
	return a, w.path, nil
}

// ServerReader takes what a server part holds.
type ServerReader interface {
	Look(l engine.ServerLook)
	Counters(at time.Time, list []engine.ServerCounter)
	Event(e engine.ServerEvent)
	Facts(f engine.ServerFacts)
}

// ReadServer gives what is in the server part of that name to a reader, in order.
func ReadServer(f File, name string, into ServerReader) (err error) {
	defer corrupt(&err)
	pq, err := parquet.OpenFile(f, f.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return fmt.Errorf("opening %s: %w", name, err)
	}
	if v, _ := pq.Lookup(metaSchemaVersion); v != strconv.Itoa(serverVersion) {
		return fmt.Errorf("opening %s: its schema version %q is not known", name, v)
	}
	r := parquet.NewGenericReader[serverRow](pq)
	defer func() { err = errors.Join(err, r.Close()) }()
	rows := make([]serverRow, enrichmentBatch)
	d := serverDecoder{into: into, texts: map[string]string{}}
	for {
		n, readErr := r.Read(rows)
		for i := range rows[:n] {
			d.row(&rows[i])
		}
		if errors.Is(readErr, io.EOF) {
			d.end()
			return nil
		}
		if readErr != nil {
			return fmt.Errorf("reading %s: %w", name, readErr)
		}
	}
}

// maxDecoderTexts bounds the texts that a decoder shares, maxTransaction an age in seconds: JSON has no infinity.
const maxDecoderTexts, maxTransaction = 10_000, 1e9

// serverDecoder puts together what belongs together.
type serverDecoder struct {
	into     ServerReader
	look     *engine.ServerLook
	counters []engine.ServerCounter
	facts    *engine.ServerFacts
	at       int64
	// texts are those that were seen, so that a look holds none of a page's memory.
	texts map[string]string
}

func (d *serverDecoder) text(s string) string {
	known, ok := d.texts[s]
	if !ok {
		if len(d.texts) >= maxDecoderTexts {
			clear(d.texts)
		}
		known = strings.Clone(s)
		d.texts[known] = known
	}
	return known
}

func (d *serverDecoder) row(r *serverRow) {
	about := r.What == serverFact || r.What == serverAdvice || r.What == serverMissing
	if r.What != serverSession && d.look != nil || d.facts != nil && !about ||
		len(d.counters) > 0 && (r.What != serverCounter || r.At != d.at) {
		d.end()
	}
	at := engine.At(time.UnixMilli(r.At))
	switch {
	case about:
		d.fact(r)
	case r.What == serverLook:
		d.look = &engine.ServerLook{At: at, TookMs: r.Value, Idle: int(r.Idle), OtherIdle: int(r.OtherIdle)}
	case r.What == serverSession && d.look != nil:
		s := engine.ActivitySample{Session: d.text(r.Session), Ours: r.Ours, State: engine.SessionState(d.text(r.State)),
			Class: engine.WaitClass(d.text(r.Class)), Event: d.text(r.Event), Scope: d.text(r.Scope),
			StatementID: d.text(r.StatementID), Text: d.text(r.Text), Alters: r.Alters,
			Application: d.text(r.Application), User: d.text(r.User),
			TransactionSeconds: min(max(0, float64(r.TransactionSeconds)), maxTransaction)}
		if r.BlockedBy != "" {
			s.BlockedBy = strings.Split(d.text(r.BlockedBy), ",")
		}
		d.look.Sessions = append(d.look.Sessions, s)
	case r.What == serverCounter:
		d.at = r.At
		d.counters = append(d.counters, engine.ServerCounter{Name: d.text(r.Name), Object: d.text(r.Object), Value: r.Value})
	case r.What == serverEvent:
		d.into.Event(
			engine.ServerEvent{At: at, Kind: d.text(r.Name), Text: d.text(r.Text), StatementID: d.text(r.StatementID)},
		)
	}
}

func (d *serverDecoder) fact(r *serverRow) {
	if d.facts == nil {
		d.facts = &engine.ServerFacts{Facts: map[string]string{}, Advice: map[string]string{}}
	}
	switch r.What {
	case serverFact:
		d.facts.Facts[d.text(r.Name)] = d.text(r.Text)
	case serverAdvice:
		d.facts.Advice[d.text(r.Name)] = d.text(r.Text)
	default:
		d.facts.Missing = append(d.facts.Missing, d.text(r.Text))
	}
}

func (d *serverDecoder) end() {
	if d.facts != nil {
		d.into.Facts(*d.facts)
		d.facts = nil
	}
	if d.look != nil {
		d.into.Look(*d.look)
		d.look = nil
	}
	if len(d.counters) > 0 {
		d.into.Counters(time.UnixMilli(d.at), d.counters)
		d.counters = d.counters[:0]
	}
}
