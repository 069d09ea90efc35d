package findings

import (
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
)

// titles are the rules in a few words.
var titles = map[string]string{
	RuleIdleInTransaction: "A session holds a lock and does nothing",
	RuleHotRow:            "Operations wait for each other on the same rows",
	RuleTableLock:         "A change of the table makes others wait",
	RuleForeignLock:       "Another session's transaction holds a lock",
	RuleMaintenanceLock:   "Maintenance of the server holds a lock",
	RuleLock:              "Operations wait for locks",
	RuleCommit:            "COMMIT waits for the log",
	RuleReplica:           "COMMIT waits for a replica",
	RuleMissingIndex:      "A table is read from end to end",
	RulePlan:              "A statement has another plan",
	RuleCache:             "Data is read from disk",
	RuleCheckpoint:        "Checkpoints follow each other closely",
	RuleSpill:             "Sorts and hashes go to disk",
	RuleVacuum:            "A vacuum works on the table",
	RuleProcessors:        "The processors are used up",
	RuleConnectionStorm:   "Connections are opened at a high rate",
	RuleJIT:               "Statements are compiled before they run",
	RuleLatch:             "Sessions contend for memory structures",
	RuleWrite:             "Sessions write data themselves",
	RuleClient:            "The server waits for its client",
	RuleOther:             "Sessions wait",
	RuleMaxConnections:    "Nearly all connections are taken",
	RuleReplicaLag:        "A replica lags behind",
	RuleOldTransaction:    "An old transaction keeps dead rows",
	RuleBloat:             "A table has many dead rows",
	RuleNothing:           "Nothing stands out",
	RuleNotPermitted:      "Not all could be seen",
	RuleNotObserved:       "The server was not seen",
}

// advice is what may help, in words that fit any database.
var advice = map[string]string{
	RuleIdleInTransaction: "End that session, and let its application commit before it waits for anything else.",
	RuleHotRow:            "Spread the writes over more rows, shorten transactions, or update the contended row last.",
	RuleTableLock:         "Make such changes with a short lock timeout and repeat them, at a quiet time.",
	RuleForeignLock:       "Shorten that transaction, or run it at another time.",
	RuleMaintenanceLock:   "Run maintenance at another time, or make it shorter.",
	RuleCommit:            "Put more work into each transaction, or give the log a faster disk.",
	RuleReplica:           "Look at the replica and the network to it, or let COMMIT not wait for it.",
	RuleMissingIndex:      "Create an index on the columns that the statement selects by.",
	RulePlan:              "Compare both plans; refresh the table's statistics, or restore the old plan's index.",
	RuleCache:             "Give the cache more memory, or read less.",
	RuleCheckpoint:        "Let more log collect between two checkpoints.",
	RuleSpill:             "Give sorts and hashes more memory, or let an index deliver the order.",
	RuleVacuum:            "Let it work more slowly, or more often on less.",
	RuleProcessors:        "Use fewer connections, make statements cheaper, or give the server more processors.",
	RuleConnectionStorm:   "Keep connections open, or put a pool before the server.",
	RuleJIT:               "Switch compilation off for short statements.",
	RuleLatch:             "Use fewer connections at a time.",
	RuleMaxConnections:    "Raise the limit, or put a pool before the server.",
	RuleReplicaLag:        "Look at the replica: reads from it are old.",
	RuleOldTransaction:    "End the old transaction.",
	RuleBloat:             "Let the table be cleaned up more often.",
}

// percent is a share in words.
func percent(v float64) string {
	if v < 0.095 {
		return strconv.FormatFloat(100*v, 'f', 1, 64) + " %"
	}
	return strconv.FormatFloat(100*v, 'f', 0, 64) + " %"
}

// describe says what a cause is, with its evidence.
func (j *judge) describe(k cause, got share) engine.Finding {
	f := engine.Finding{Title: titles[k.rule], StatementID: j.statementOf(k)}
	spent := fmt.Sprintf("%s of the client's time (at least %s)", percent(got.value), percent(got.low))
	switch k.rule {
	case RuleIdleInTransaction, RuleTableLock, RuleForeignLock, RuleMaintenanceLock:
		who := j.c.culprits[k.who]
		name := sessionName(who)
		if k.who == rest {
			name = "rest of the sessions"
		} else {
			f.Who = &who
		}
		what := map[string]string{RuleIdleInTransaction: "has an open transaction and does nothing",
			RuleTableLock: "changes or locks a table", RuleForeignLock: "holds a lock in its transaction",
			RuleMaintenanceLock: "holds a lock"}[k.rule]
		f.Text = fmt.Sprintf("The %s %s. Waiting for it took %s.", name, what, spent)
	case RuleHotRow:
		f.Text = fmt.Sprintf(
			"The run's own transactions wait for locks on rows that others of them hold. That took %s.",
			spent,
		)
	case RuleMissingIndex:
		f.Object = k.who
		f.Text = fmt.Sprintf(
			"%s was read from end to end, %s rows each time. That took %s.",
			k.who,
			j.rowsPerScan(k.who),
			spent,
		)
	case RulePlan:
		f.StatementID = k.who
		f.Text = fmt.Sprintf("The plan of the statement %s changed during the run. Since then it took %s.", k.who, spent)
	case RuleVacuum:
		f.Object = k.who
		f.Text = fmt.Sprintf("A vacuum of %s went on. Reading and writing beside it took %s.", k.who, spent)
	case RuleLatch, RuleOther, RuleLock:
		f.Text = fmt.Sprintf("Sessions of the run waited for %s. That took %s.", event(k.who), spent)
	case RuleSpill:
		f.Text = fmt.Sprintf(
			"Temporary files were written, %s in all. That took %s.",
			bytesText(j.sum(plugin.CounterTempBytes)),
			spent,
		)
	case RuleCommit:
		f.Text = fmt.Sprintf("Sessions waited until their changes were in the log, %.2g ms for each operation. That took %s.",
			1e3*j.perOperation(k), spent)
	case RuleCheckpoint:
		f.Text = fmt.Sprintf(
			"%.0f checkpoints were requested, and whole pages were written to the log after each. That took %s.",
			j.sum(plugin.CounterRequested),
			spent,
		)
	case RuleConnectionStorm:
		f.Text = fmt.Sprintf("%.0f sessions were opened during the run. That took %s.", j.sum(plugin.CounterSessions), spent)
	case RuleProcessors:
		f.Text = fmt.Sprintf("More sessions could run than the %s can carry. Waiting for a turn took %s.",
			engine.Count(j.in.Processors, "processor"), spent)
	case RuleCache:
		f.Text = fmt.Sprintf("Sessions of the run waited for data from files%s. That took %s.", j.hitText(), spent)
	default:
		f.Text = fmt.Sprintf("%s: that took %s.", titles[k.rule], spent)
	}
	if f.StatementID != "" && k.rule != RulePlan {
		f.Text += " It concerns most the statement " + f.StatementID + "."
	}
	return f
}

// hitText says how often the cache had what was asked for.
func (j *judge) hitText() string {
	read, hit := j.sum(plugin.CounterBlocksRead), j.sum(plugin.CounterBlocksHit)
	if read+hit == 0 {
		return ""
	}
	return fmt.Sprintf("; the cache had %s of the pages", percent(hit/(read+hit)))
}

func event(name string) string {
	switch name {
	case "":
		return "something the server does not name"
	case rest:
		return "other events"
	}
	return name
}

// sessionName names a session for a sentence.
func sessionName(s engine.FindingSession) string {
	name := "session " + s.Session
	if s.Application != "" {
		name += " of " + s.Application
	}
	if s.User != "" {
		name += " (user " + s.User + ")"
	}
	return name
}

// bytesText is an amount of bytes.
func bytesText(n float64) string {
	for _, unit := range []string{"bytes", "kB", "MB", "GB"} {
		if n < 1000 {
			return strconv.FormatFloat(n, 'f', 0, 64) + " " + unit
		}
		n /= 1000
	}
	return strconv.FormatFloat(n, 'f', 1, 64) + " TB"
}

// sum is by how much counters of a name rose in the seconds that were judged.
func (j *judge) sum(name string) (total float64) {
	for _, i := range j.used {
		for k, v := range j.c.slots[i].rates {
			if k.name == name {
				total += v
			}
		}
	}
	return total
}

func (j *judge) rowsPerScan(table string) string {
	var rows, scans float64
	for _, i := range j.used {
		rows += j.c.slots[i].rates[counterKey{plugin.CounterTableScanRows, table}]
		scans += j.c.slots[i].rates[counterKey{plugin.CounterTableScans, table}]
	}
	return strconv.FormatFloat(rows/max(1, scans), 'f', 0, 64)
}

// statementOf is the statement that had most of a cause, "" where none had over half.
func (j *judge) statementOf(k cause) string {
	of := j.c.statements[k]
	switch k.rule {
	case RuleMissingIndex, RuleSpill, RuleJIT:
		of = j.c.statements[cause{rule: ruleWork}]
	}
	best, most, total := "", 0.0, 0.0
	names := make([]string, 0, len(of))
	for id := range of {
		names = append(names, id)
	}
	sort.Strings(names)
	for _, id := range names {
		if total += of[id]; of[id] > most {
			best, most = id, of[id]
		}
	}
	if most <= total/2 {
		return ""
	}
	return best
}

// notes are what is worth knowing beside the causes. found says that there are some.
func (j *judge) notes(found bool, t *engine.ServerTime) (list []engine.Finding) {
	note := func(rule, text, try string) {
		f := engine.Finding{Rule: rule, Level: engine.LevelNote, Title: titles[rule], Text: text, Try: advice[rule],
			From: engine.At(j.in.From), To: engine.At(j.in.To)}
		if own := j.c.facts.Advice[rule]; own != "" {
			f.Try = own
		}
		if try != "" {
			f.Try = try
		}
		list = append(list, f)
	}
	if t == nil {
		note(RuleNotObserved, "Nothing is known of what the server did.", "")
		return append(list, j.unseen()...)
	}
	if t.Unseen > t.Seconds/10 {
		note(
			RuleNotObserved,
			fmt.Sprintf("%s of the measurement were not seen: the server did not answer the observer in time.",
				engine.Count(t.Unseen, "second")),
			"",
		)
	}
	if limit, err := strconv.ParseFloat(j.c.facts.Facts[plugin.FactMaxConnections], 64); err == nil && limit > 0 {
		if most := j.c.peaks[plugin.CounterConnections]; most >= 0.9*limit {
			note(RuleMaxConnections, fmt.Sprintf("%.0f of %.0f connections were taken at a time.", most, limit), "")
		}
	}
	if lag := j.c.peaks[plugin.CounterReplicaLag]; lag > 100e6 {
		note(RuleReplicaLag, fmt.Sprintf("A replica was behind by %s of log.", bytesText(lag)), "")
	}
	if age := j.c.peaks[plugin.CounterOldestSnapshot]; age > 300 {
		note(RuleOldTransaction, fmt.Sprintf("A transaction was open for %.0f s: rows that died since cannot be cleaned up.",
			age), "")
	}
	for _, key := range j.bloated() {
		note(RuleBloat, fmt.Sprintf("%s has more dead rows than live ones.", key), "")
		list[len(list)-1].Object = key
	}
	if !found {
		j.nothing(t, note)
	}
	return append(list, j.unseen()...)
}

// nothing says that no cause stands out, and where to look.
func (j *judge) nothing(t *engine.ServerTime, note func(rule, text, try string)) {
	if t.InFlight <= 0 {
		note(RuleNothing, "No operation was under way while the server was looked at.", "")
		return
	}
	busy := 0.0
	for _, v := range t.Classes {
		busy += v
	}
	idle := max(0, 1-(busy+t.Waiting)/t.InFlight)
	switch {
	case t.Waiting/t.InFlight > 0.5:
		note(RuleNothing, fmt.Sprintf("Operations waited for a connection or for the generator for %s of the client's time.",
			percent(t.Waiting/t.InFlight)), "Use more connections or run workers, or a lower rate.")
	case idle > 0.5:
		note(RuleNothing, fmt.Sprintf("The server was idle for %s of the client's time.", percent(idle)),
			"Look at the network or the client.")
	default:
		note(RuleNothing, fmt.Sprintf("Sessions of the run worked for %s of the client's time, and waited for nothing in "+
			"particular.", percent(busy/t.InFlight)), "")
	}
}

func (j *judge) unseen() (list []engine.Finding) {
	for _, text := range j.c.facts.Missing {
		list = append(list, engine.Finding{Rule: RuleNotPermitted, Level: engine.LevelNote, Title: titles[RuleNotPermitted],
			Text: strings.TrimSpace(text), From: engine.At(j.in.From), To: engine.At(j.in.To)})
	}
	return list
}

// bloated are the tables with more dead rows than live ones, as they were seen last.
func (j *judge) bloated() (list []string) {
	for key, v := range j.c.counters {
		if key.name == plugin.CounterTableDeadRows && v.value > 10_000 &&
			v.value > j.c.counters[counterKey{plugin.CounterTableLiveRows, key.object}].value {
			list = append(list, key.object)
		}
	}
	sort.Strings(list)
	return list
}
