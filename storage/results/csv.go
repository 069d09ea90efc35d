package results

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine/base/textsafe"
	"github.com/loadstone-db/loadstone/engine/results/record"
)

const csvHeader = "run_id,test_id,worker_id,connection_id,seq,step,phase,warmup,kind,statement_id,due_at,started_at," +
	"app_elapsed_ms,schedule_lag_ms,pool_wait_ms,rows,success,error_class,error_code,error_message,retries," +
	"server_query_id,position,rolled_back,decode_ns"

// csvEnriched are the columns that an enriched run has more, empty where the history had nothing.
const csvEnriched = ",server_ms,compilation_ms,execution_ms,queued_ms,blocked_ms,overhead_ms,cluster_number," +
	"execution_status"

// csvTime keeps all nanoseconds, so that a column has one width.
const csvTime = "2006-01-02T15:04:05.000000000Z"

// WriteCSV streams every execution of the run to w as CSV (RFC 4180, header
// line, LF, null as an empty field; formulas in texts are neutralised), part by part in the order of their names.
// Memory is one row group, and 56 bytes for each execution that was enriched. A
// run without parts gives the header alone.
func (f *Results) WriteCSV(ctx context.Context, runID string, w io.Writer) error {
	parts, err := f.executionParts(ctx, runID)
	if err != nil {
		return err
	}
	more, err := f.enrichedRows(ctx, runID)
	if err != nil {
		return fmt.Errorf("exporting executions: %w", err)
	}
	header := csvHeader
	if more != nil {
		header += csvEnriched
	}
	if _, err := io.WriteString(w, header+"\n"); err != nil {
		return fmt.Errorf("exporting executions: %w", err)
	}
	for _, at := range parts {
		if err := writePartCSV(ctx, at, w, more); err != nil {
			return fmt.Errorf("exporting executions: %w", err)
		}
	}
	return nil
}

func writePartCSV(ctx context.Context, at part, w io.Writer, more *enrichedRows) error {
	p, err := at.open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = p.Close() }() // only read
	var buf []byte
	var r rows
	for _, err := range r.Scan(ctx, p, csvColumns...) {
		if err != nil {
			return err
		}
		r.quote()
		for i := range r.N {
			buf = r.appendCSV(buf, i)
			if more != nil {
				buf = more.appendCSV(buf, r.QueryID.At(i))
			}
			buf = append(buf, '\n')
			if len(buf) >= 64<<10 || i == r.N-1 {
				if _, err := w.Write(buf); err != nil {
					return err
				}
				buf = buf[:0]
			}
		}
	}
	return nil
}

// quote makes the dictionary values ready for CSV, once per row group.
func (r *rows) quote() {
	for _, t := range []*record.Texts{&r.Run, &r.Result, &r.Worker, &r.Phase, &r.Kind, &r.Statement, &r.Class, &r.Code,
		&r.Message, &r.QueryID} {
		for i, v := range t.Values {
			t.Values[i] = csvText(v)
		}
	}
}

// csvText writes a text as a field.
func csvText(v string) string {
	v = textsafe.CSVField(v)
	if strings.ContainsAny(v, ",;\"\r\n\t") || strings.TrimSpace(v) != v {
		return `"` + strings.ReplaceAll(v, `"`, `""`) + `"`
	}
	return v
}

func (r *rows) appendCSV(b []byte, i int) []byte {
	b = append(append(b, r.Run.At(i)...), ',')
	b = append(append(b, r.Result.At(i)...), ',')
	b = append(append(b, r.Worker.At(i)...), ',')
	b = append(strconv.AppendUint(b, uint64(uint32(r.Connection[i])), 10), ',')
	b = append(strconv.AppendUint(b, uint64(uint32(r.Seq[i])), 10), ',')
	b = append(strconv.AppendInt(b, int64(r.Step[i]), 10), ',')
	b = append(append(b, r.Phase.At(i)...), ',')
	b = append(strconv.AppendBool(b, r.Warmup[i]), ',')
	b = append(append(b, r.Kind.At(i)...), ',')
	b = append(append(b, r.Statement.At(i)...), ',')
	b = append(time.Unix(0, r.Due[i]).UTC().AppendFormat(b, csvTime), ',')
	b = append(time.Unix(0, r.Started[i]).UTC().AppendFormat(b, csvTime), ',')
	b = append(strconv.AppendFloat(b, r.Elapsed[i], 'f', -1, 64), ',')
	b = append(strconv.AppendFloat(b, r.Lag[i], 'f', -1, 64), ',')
	b = append(strconv.AppendFloat(b, r.Wait[i], 'f', -1, 64), ',')
	b = append(strconv.AppendInt(b, int64(r.Rows[i]), 10), ',')
	b = append(strconv.AppendBool(b, r.Success[i]), ',')
	b = append(append(b, r.Class.At(i)...), ',')
	b = append(append(b, r.Code.At(i)...), ',')
	b = append(append(b, r.Message.At(i)...), ',')
	b = append(strconv.AppendInt(b, int64(r.Retries[i]), 10), ',')
	b = append(append(b, r.QueryID.At(i)...), ',')
	b = append(strconv.AppendInt(b, int64(r.Position[i]), 10), ',')
	b = append(strconv.AppendBool(b, r.RolledBack[i]), ',')
	return strconv.AppendInt(b, r.Decode[i], 10)
}
