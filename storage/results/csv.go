package results

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine/base/textsafe"
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
	for g := range p.RowGroups() {
		if err := ctx.Err(); err != nil {
			return err
		}
		r, err := readRows(p, g)
		if err != nil {
			return err
		}
		r.quote()
		for i := range r.n {
			buf = r.appendCSV(buf, i)
			if more != nil {
				buf = more.appendCSV(buf, r.queryID.at(i))
			}
			buf = append(buf, '\n')
			if len(buf) >= 64<<10 || i == r.n-1 {
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
	for _, t := range []*text{&r.run, &r.result, &r.worker, &r.phase, &r.kind, &r.statement, &r.class, &r.code, &r.message,
		&r.queryID} {
		for i, v := range t.values {
			t.values[i] = csvText(v)
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
	b = append(append(b, r.run.at(i)...), ',')
	b = append(append(b, r.result.at(i)...), ',')
	b = append(append(b, r.worker.at(i)...), ',')
	b = append(strconv.AppendUint(b, uint64(uint32(r.connection[i])), 10), ',')
	b = append(strconv.AppendUint(b, uint64(uint32(r.seq[i])), 10), ',')
	b = append(strconv.AppendInt(b, int64(r.step[i]), 10), ',')
	b = append(append(b, r.phase.at(i)...), ',')
	b = append(strconv.AppendBool(b, r.warmup[i]), ',')
	b = append(append(b, r.kind.at(i)...), ',')
	b = append(append(b, r.statement.at(i)...), ',')
	b = append(time.Unix(0, r.due[i]).UTC().AppendFormat(b, csvTime), ',')
	b = append(time.Unix(0, r.started[i]).UTC().AppendFormat(b, csvTime), ',')
	b = append(strconv.AppendFloat(b, r.elapsed[i], 'f', -1, 64), ',')
	b = append(strconv.AppendFloat(b, r.lag[i], 'f', -1, 64), ',')
	b = append(strconv.AppendFloat(b, r.wait[i], 'f', -1, 64), ',')
	b = append(strconv.AppendInt(b, int64(r.rows[i]), 10), ',')
	b = append(strconv.AppendBool(b, r.success[i]), ',')
	b = append(append(b, r.class.at(i)...), ',')
	b = append(append(b, r.code.at(i)...), ',')
	b = append(append(b, r.message.at(i)...), ',')
	b = append(strconv.AppendInt(b, int64(r.retries[i]), 10), ',')
	b = append(append(b, r.queryID.at(i)...), ',')
	b = append(strconv.AppendInt(b, int64(r.position[i]), 10), ',')
	b = append(strconv.AppendBool(b, r.rolledBack[i]), ',')
	return strconv.AppendInt(b, r.decode[i], 10)
}
