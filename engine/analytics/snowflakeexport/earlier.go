package snowflakeexport

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
)

// transactionName is by what transactions of a claim are known in the account: the run, and the epoch at the end.
func transactionName(c refresh.Claim) string {
	if c.Epoch < 0 {
		return runTransactions(c.Subtask) + liveTransaction + strconv.FormatInt(c.Epoch-liveEpochs, 10)
	}
	return runTransactions(c.Subtask) + strconv.FormatInt(c.Epoch, 10)
}

func runTransactions(runID string) string {
	return "LOADSTONE_EXPORT_" + strings.ToUpper(strings.Trim(strings.TrimPrefix(folder(runID), "loadstone/"), "/")) + "_"
}

// endEarlier aborts what earlier claims of the run have left open: a server that died holds its rows for minutes. One
// that lives has lost its claim, and its transaction with it.
func (e *Export) endEarlier(ctx context.Context, c refresh.Claim) error {
	rs, err := e.Account.Query(ctx, "SHOW TRANSACTIONS")
	if err != nil {
		return fmt.Errorf("looking for transactions of earlier claims: %w", err)
	}
	id, name := -1, -1
	for i, column := range rs.Columns {
		switch strings.ToLower(column) {
		case "id":
			id = i
		case "name":
			name = i
		}
	}
	if id < 0 || name < 0 {
		return nil // the account ends the remaining transactions
	}
	for _, row := range rs.Rows {
		text, ours := strings.CutPrefix(strings.ToUpper(fmt.Sprint(row[name])), runTransactions(c.Subtask))
		text, live := strings.CutPrefix(text, liveTransaction)
		epoch, err := strconv.ParseInt(text, 10, 64)
		if live {
			epoch += liveEpochs
		}
		if !ours || err != nil || epoch >= c.Epoch {
			continue
		}
		n, err := strconv.ParseInt(fmt.Sprint(row[id]), 10, 64)
		if err != nil {
			return fmt.Errorf("the account calls a transaction %q: %w", fmt.Sprint(row[id]), err)
		}
		_, err = e.Account.Query(ctx, "SELECT SYSTEM$ABORT_TRANSACTION("+strconv.FormatInt(n, 10)+")")
		if err != nil && e.Account.Classify(err).Class == engine.ErrClassConnection {
			return fmt.Errorf("ending a transaction of an earlier claim: %w", err)
		} // one that has ended meanwhile needs no end, and for others there is the limit for locks
	}
	return nil
}

// removeEarlier removes files that earlier claims of the run have left on the stage.
func (e *Export) removeEarlier(ctx context.Context, c refresh.Claim) error {
	rs, err := e.Account.Query(ctx, "LIST '@~/"+folder(c.Subtask)+"'")
	if err != nil {
		return fmt.Errorf("looking for files of earlier claims: %w", err)
	}
	removed := map[int64]bool{}
	for _, row := range rs.Rows {
		_, rest, found := strings.Cut(fmt.Sprint(row[0]), folder(c.Subtask))
		text, _, _ := strings.Cut(rest, "/")
		epoch, err := strconv.ParseInt(text, 10, 64)
		if !found || err != nil || epoch >= c.Epoch || removed[epoch] {
			continue
		}
		removed[epoch] = true
		if err := e.Account.Exec(ctx, "REMOVE '@~/"+folder(c.Subtask)+text+"/'"); err != nil {
			return fmt.Errorf("removing files of an earlier claim: %w", err)
		}
	}
	return nil
}
