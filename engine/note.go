package engine

import (
	"cmp"
	"fmt"
	"strings"
)

// NoteCode says what a note is about. It is stable, and part of the API.
type NoteCode string

// Note is something to know of a run, as data; which parameters it has follows from its code. String makes its words.
// The zero Note is none.
type Note struct {
	Code NoteCode `json:"code"`
	// Live: it was made while the run went on. The others follow from its figures.
	Live bool `json:"live,omitempty"`
	// Text is what others have said: a plugin, a database, or a version of Loadstone that stored no codes.
	Text string `json:"text,omitempty"`
	// User is who has done it. A note without its user is a sentence too.
	User      string `json:"user,omitempty"`
	Worker    string `json:"worker,omitempty"`
	Node      string `json:"node,omitempty"`
	Statement string `json:"statement,omitempty"`
	Part      string `json:"part,omitempty"`
	Kind      Kind   `json:"kind,omitempty"`
	Cause     string `json:"cause,omitempty"`
	Warehouse string `json:"warehouse,omitempty"`
	Fallback  string `json:"fallback_warehouse,omitempty"`
	// Address is where a server answers.
	Address string  `json:"address,omitempty"`
	Count   int64   `json:"count,omitempty"`
	Total   int64   `json:"total,omitempty"`
	Old     float64 `json:"old,omitempty"`
	New     float64 `json:"new,omitempty"`
	Percent float64 `json:"percent,omitempty"`
	Ms      float64 `json:"ms,omitempty"`
	// Worst is the worst of a cause's interval, in the unit of its code.
	Worst   float64 `json:"worst,omitempty"`
	Seconds float64 `json:"seconds,omitempty"`
	// Planned is how many seconds were asked for.
	Planned float64 `json:"planned_seconds,omitempty"`
	At      Time    `json:"at,omitzero"`
	// Hidden are the percentiles that stalls make look better than they are.
	Hidden []HiddenPercentile `json:"hidden,omitempty"`
}

// HiddenPercentile is what a percentile is, and what it would be at least.
type HiddenPercentile struct {
	Name    string  `json:"name"`
	Ms      float64 `json:"ms"`
	WouldMs float64 `json:"would_ms"`
}

// The codes of notes.
const (
	// NoteText is a sentence of a driver or a plugin, NoteUncoded one that a version without codes has stored.
	NoteText    NoteCode = "text"
	NoteUncoded NoteCode = "uncoded"

	NoteRunStarted         NoteCode = "run_started"
	NoteRateChanged        NoteCode = "rate_changed"
	NoteConnectionsChanged NoteCode = "connections_changed"
	NoteMoreLoadChanges    NoteCode = "more_load_changes"
	NoteConcurrentRuns     NoteCode = "concurrent_runs"
	NoteTargetLocal        NoteCode = "target_local"
	NoteProcessorsTaken    NoteCode = "processors_taken"
	NoteClockSet           NoteCode = "clock_set"
	NoteTimesUncertain     NoteCode = "times_uncertain"
	NoteIOEngine           NoteCode = "io_engine"
	NoteEndedInWarmup      NoteCode = "ended_in_warmup"
	NoteEndedEarly         NoteCode = "ended_early"
	NoteMoreCauses         NoteCode = "more_causes"
	NoteFallbackUnused     NoteCode = "fallback_warehouse_unused"
	NoteFallbackUnknown    NoteCode = "fallback_warehouse_unknown"
	NoteBurstUnknown       NoteCode = "burst_credits_unknown"

	// These follow from the figures.
	NoteShort             NoteCode = "measurement_short"
	NoteFewOperations     NoteCode = "operations_few"
	NoteNoWarmup          NoteCode = "no_warmup"
	NoteRecordPartial     NoteCode = "record_partial"
	NoteRecordUnreachable NoteCode = "record_unreachable"
	NoteConnectionsLost   NoteCode = "connections_lost"
	NoteFinishedLate      NoteCode = "finished_late"
	NoteCarriedOver       NoteCode = "carried_over"
	NoteOverran           NoteCode = "overran"
	NoteNothingInserted   NoteCode = "nothing_inserted"
	NoteNothingFound      NoteCode = "nothing_found"
	NoteNothingReturned   NoteCode = "nothing_returned"
	NoteKeysReplaced      NoteCode = "keys_replaced"
	NoteFewFailed         NoteCode = "few_failed"
	NoteErrors            NoteCode = "errors"
	NoteOutage            NoteCode = "outage"
	NoteOutagesUnknown    NoteCode = "outages_unknown"
	NoteTargetServer      NoteCode = "target_server"

	// Seconds without an answer, as the snapshots show them and as the record does.
	NoteNoneEnded        NoteCode = "none_ended"
	NoteNoneEndedMore    NoteCode = "none_ended_more"
	NoteFewAnswered      NoteCode = "few_answered"
	NoteNoneAnswered     NoteCode = "none_answered"
	NoteNoneAnsweredMore NoteCode = "none_answered_more"
	NoteHiddenLatency    NoteCode = "hidden_latency"
	// NoteFreezes are too short together to be a cause.
	NoteFreezes NoteCode = "freezes_short"
	// NoteThreadsWake is of latencies that are higher by what it takes a thread to wake up.
	NoteThreadsWake NoteCode = "threads_wake"
)

// The codes of what is said of a cause.
const (
	AboutGeneratorCPU     NoteCode = CauseGeneratorCPU
	AboutGCPause          NoteCode = CauseGCPause
	AboutRecorderStall    NoteCode = CauseRecorderStall
	AboutLostWorker       NoteCode = CauseLostWorker
	AboutProcessStalled   NoteCode = "process_stalled"
	AboutWorkerStalled    NoteCode = "worker_stalled"
	AboutNodeStalled      NoteCode = "node_stalled"
	AboutNodeStalledOften NoteCode = "node_stalled_often"
	AboutSnapshotsMissing NoteCode = "snapshots_missing"
	AboutNoServer         NoteCode = "no_server"
	AboutClockStep        NoteCode = CauseClockStep
	AboutScheduleLag      NoteCode = CauseScheduleLag
	AboutPoolWait         NoteCode = CausePoolWait
	AboutDropped          NoteCode = CauseDropped
	AboutNeverBegun       NoteCode = "never_begun"
	AboutErrors           NoteCode = "most_failed"
	AboutFailing          NoteCode = CauseFailing
	AboutNothingMeasured  NoteCode = CauseNothingMeasured
	AboutNothingRecorded  NoteCode = "nothing_recorded"
	AboutServerDown       NoteCode = "server_down"
	AboutRecordNoRoom     NoteCode = "record_no_room"
	AboutPartNotStored    NoteCode = "part_not_stored"
	AboutFiguresFailed    NoteCode = "figures_failed"
	AboutUnbalanced       NoteCode = "accounting_unbalanced"
	AboutFallback         NoteCode = CauseFallback
	AboutKindFailed       NoteCode = CauseKindFailed
	AboutMisses           NoteCode = CauseMisses
	AboutConnectionsShort NoteCode = CauseConnectionsShort
	AboutHeldOver         NoteCode = "held_over"
	AboutGeneratorStarved NoteCode = CauseGeneratorStarved
	AboutFreezes          NoteCode = CauseFreezes
	AboutBurst            NoteCode = CauseBurst
)

// TextNote is a note in the words of a driver or a plugin.
func TextNote(text string) Note {
	if text == "" {
		return Note{}
	}
	return Note{Code: NoteText, Text: text}
}

// String is the note in words: a sentence. It is empty of a code that this version does not know, and of the zero Note.
func (n Note) String() string {
	words, ok := noteWords[n.Code]
	if !ok {
		words, ok = causeWords[n.Code]
	}
	if !ok {
		return n.Text
	}
	return words(n)
}

// noteWords are the only place that has the words of notes.
var noteWords = map[NoteCode]func(Note) string{
	NoteRunStarted: func(n Note) string { return "The run was started" + by(n.User) },
	NoteRateChanged: func(n Note) string {
		return fmt.Sprintf("The rate was changed while the run went on, from %g/s to %g/s at %.0f s%s.", n.Old, n.New,
			n.Seconds, by(n.User))
	},
	NoteConnectionsChanged: func(n Note) string {
		return fmt.Sprintf("The connections were changed while the run went on, from %.0f to %.0f at %.0f s%s.", n.Old, n.New,
			n.Seconds, by(n.User))
	},
	NoteMoreLoadChanges: func(n Note) string {
		return fmt.Sprintf("The load was changed %d more times while the run went on.", n.Count)
	},
	NoteConcurrentRuns: func(n Note) string {
		if n.Count == 1 {
			return "1 other run was live on this server at the same time."
		}
		return fmt.Sprintf("Up to %d other runs were live on this server at the same time.", n.Count)
	},
	NoteTargetLocal: sentence("The target is on the same machine as the load generator."),
	NoteProcessorsTaken: func(n Note) string {
		return fmt.Sprintf(
			"%s: in %d of %d s its machine had no processor left, of which the generator used less than half: "+
				"others worked there, and the latencies of a closed loop hold what the generator waited for.",
			n.Node,
			n.Count,
			n.Total,
		)
	},
	NoteClockSet: func(n Note) string {
		return fmt.Sprintf("At %s the machine's clock was set %s. The run's times, rates and latencies are told by the "+
			"clock as it was at the run's start.", clockTime(n.At), ClockStep(n.Seconds))
	},
	NoteTimesUncertain: func(n Note) string {
		return fmt.Sprintf(
			"The times in the record of %s, on %s, are the server's to within %.3g ms.",
			n.Worker,
			n.Node,
			n.Ms,
		)
	},
	NoteIOEngine: func(n Note) string {
		// Notes of earlier versions say neither.
		asked, drove, why := cmp.Or(n.Text, string(IOEvents)), cmp.Or(n.Part, string(IOGoroutines)),
			cmp.Or(n.Cause, "event loops need Linux and connections without TLS")
		return fmt.Sprintf("workload.io_engine asks for %s, but %s drove the connections: %s.", asked, drove, why)
	},
	NoteEndedInWarmup: func(n Note) string {
		return fmt.Sprintf("The workload ended by itself in the warm-up: nothing of the %.6g s was measured.", n.Planned)
	},
	NoteEndedEarly: func(n Note) string {
		return fmt.Sprintf("The workload ended by itself after %.3g of %.6g s: it had no more operations.", n.Seconds,
			n.Planned)
	},
	NoteMoreCauses: func(n Note) string {
		return fmt.Sprintf("%s was seen %d more times, which are not listed.", n.Cause, n.Count)
	},
	NoteFallbackUnused: func(n Note) string {
		return fmt.Sprintf("The warehouse %s has the fallback warehouse %s, which took no part: nothing took as long as "+
			"%.0f s.", n.Warehouse, n.Fallback, n.Seconds)
	},
	NoteBurstUnknown: func(n Note) string {
		return slowedDown(n) + ". An instance with CPU credits does that when they are used up; whether the target is one " +
			"was not said (target.params.compute_family)."
	},
	NoteFallbackUnknown: func(n Note) string {
		return fmt.Sprintf(
			"Whether the interactive warehouse %s has a fallback warehouse is not known. The longest execution "+
				"took %.1f s: what takes %.0f s may have been executed again there, and then two warehouses were measured.",
			n.Warehouse,
			n.Worst,
			n.Seconds,
		)
	},
	NoteShort: func(n Note) string {
		return fmt.Sprintf(
			"The measurement took %.3g s: under %.0f s, chance and what comes seldom (a checkpoint, a vacuum) "+
				"decide the figures, and a comparison with this run alone is not judged.",
			n.Seconds,
			n.Planned,
		)
	},
	NoteFewOperations: func(n Note) string {
		were := fmt.Sprintf("%d operations were", n.Count)
		if n.Count == 1 {
			were = "1 operation was"
		}
		return fmt.Sprintf("%s measured: P99 and what lies above rest on the slowest %d, and move with each of them.", were,
			(n.Count+99)/100)
	},
	NoteNoWarmup: sentence("There was no warm-up: what the first operations met cold (connections, caches, plans) is in " +
		"the figures."),
	NoteRecordPartial: func(n Note) string {
		if n.Seconds > 0 {
			return fmt.Sprintf("Parts of the record are lost: rates are taken over the %.3g s for which it is there.", n.Seconds)
		}
		return "Parts of the record are lost, and of no time is all of it there: there are no rates."
	},
	NoteRecordUnreachable: sentence(
		"The record of the run lies in the data directory of the server that carried it. It is " +
			"taken in, and the figures are computed again, when that server is started there.",
	),
	NoteConnectionsLost: func(n Note) string {
		return fmt.Sprintf("While the load went on %d connections were lost, and %d attempts to open one were refused.",
			n.Count, n.Total)
	},
	NoteOverran: func(n Note) string {
		return fmt.Sprintf(
			"Run workers that could not be reached began %s after the measurement: recorded, and in no figure.",
			Count(n.Count, "operation"),
		)
	},
	NoteFinishedLate: func(n Note) string {
		return fmt.Sprintf(
			"%d operations (%.3g %%) ended after the measurement, up to %.3g s later: they are in operations, "+
				"latency and errors, and in no rate.",
			n.Count,
			n.Percent,
			n.Seconds,
		)
	},
	NoteCarriedOver: func(n Note) string {
		return fmt.Sprintf(
			"%s (%.3g %% of those that ended in the measurement) were due in the warm-up: they are in the rate, and in no "+
				"other figure.",
			Count(n.Count, "operation"),
			n.Percent,
		)
	},
	NoteNothingInserted: func(n Note) string {
		what := "the operations of kind INSERT"
		if n.Statement != "" {
			what = "the executions of " + n.Statement + " inside of transactions"
		}
		return fmt.Sprintf("%.3g %% of %s succeeded and inserted no row, by the server's own count: a trigger, a rule or "+
			"ON CONFLICT left it out, or put it elsewhere.", n.Percent, what)
	},
	NoteNothingFound: func(n Note) string {
		return fmt.Sprintf(
			"%.3g %% of the operations of kind %s succeeded and found no row: they are faster than those that "+
				"find one.",
			n.Percent,
			n.Kind,
		)
	},
	NoteNothingReturned: func(n Note) string {
		return fmt.Sprintf("None of the %d executions of %s that succeeded returned a row: they are faster than those that "+
			"return one.", n.Count, n.Statement)
	},
	NoteKeysReplaced: func(n Note) string {
		return fmt.Sprintf(
			"%d operations were to look for rows that the run had failed to insert; they looked for other rows "+
				"instead.",
			n.Count,
		)
	},
	NoteFewFailed: func(n Note) string {
		every := fmt.Sprintf("All %d operations", n.Count)
		if n.Count == 1 {
			every = "The only operation"
		}
		return fmt.Sprintf("%s of kind %s failed: too few to judge the kind by.", every, n.Kind)
	},
	NoteErrors: func(n Note) string {
		return fmt.Sprintf("%.3g %% of the operations failed; they are part of the latency and the throughput.", n.Percent)
	},
	NoteOutage: func(n Note) string { return n.Text + "." },
	NoteTargetServer: func(n Note) string {
		text := n.Text + "."
		if n.Address != "" {
			text += " Its address is " + n.Address + "."
		}
		if !n.At.IsZero() {
			text += " It was started at " + n.At.UTC().Format("2006-01-02 15:04:05 UTC") + "."
		}
		return text
	},
	NoteOutagesUnknown: sentence("Outages could not be looked for, because the record could not be read."),
	NoteNoneEnded: func(n Note) string {
		return fmt.Sprintf(
			"From %s on no operation ended for %.0f s, after %.0f a second before: the target did not answer, "+
				"or connections were lost.",
			clockTime(n.At),
			n.Seconds,
			n.Old,
		)
	},
	NoteNoneEndedMore: func(n Note) string {
		return fmt.Sprintf("No operation ended for seconds %d more times.", n.Count)
	},
	NoteFewAnswered: func(n Note) string {
		return fmt.Sprintf("From %s on only %d operations were answered in %.3g s on all connections (timeouts are no "+
			"answers), where about %d were to be expected: the target answered next to nothing.",
			n.At.UTC().Format("15:04:05.000"), n.Count, n.Seconds, n.Total)
	},
	NoteNoneAnswered: func(n Note) string {
		why := "the target did not answer, or connections were lost"
		switch n.Cause {
		case StallOfGenerator:
			why = "Loadstone itself stood still, and knows nothing of the target meanwhile"
		case CauseSnapshotGap:
			why += ", or Loadstone itself did not run: it was not heard of all the while (snapshot_gap)"
		}
		return fmt.Sprintf("From %s on no operation was answered for %.3g s on any connection (timeouts are no answers), "+
			"where about %d were to be expected: %s.", n.At.UTC().Format("15:04:05.000"), n.Seconds, n.Total, why)
	},
	NoteNoneAnsweredMore: func(n Note) string {
		return fmt.Sprintf("No operation, or next to none, was answered for a second or more %d more times.", n.Count)
	},
	NoteFreezes: func(n Note) string { return upper(freezes(n)) + "." },
	NoteThreadsWake: func(n Note) string {
		return fmt.Sprintf("Latencies may be too high by what it takes a thread of the load generator to wake up: %s. Every "+
			"client on this machine has that.", tooHigh(n))
	},
	NoteHiddenLatency: func(n Note) string {
		var parts []string
		for _, p := range n.Hidden {
			parts = append(parts, fmt.Sprintf("the %s would be %s or more instead of %s", p.Name, LatencyText(p.WouldMs),
				LatencyText(p.Ms)))
		}
		return fmt.Sprintf(
			"A closed loop asks nothing while it waits. Had users come at the same pace in the %.3g s without "+
				"any answer too, about %d operations more, %s (estimated; load_mode: QPS measures it).",
			n.Seconds,
			n.Count,
			strings.Join(parts, " and "),
		)
	},
}

// causeWords are the only place that has the words of causes. They follow a colon, and have no period.
var causeWords = map[NoteCode]func(Note) string{
	AboutGeneratorCPU: func(n Note) string {
		return fmt.Sprintf("%s: the generator used up to %.0f %% of its CPUs for %.0f s", n.Node, n.Worst, n.Seconds)
	},
	AboutGCPause: func(n Note) string {
		return fmt.Sprintf("%s: the generator paused up to %.1f ms for garbage collection", n.Node, n.Worst)
	},
	AboutRecorderStall: func(n Note) string {
		return fmt.Sprintf("%s: connections waited up to %.0f ms in a second for the recorder", n.Worker, n.Worst)
	},
	AboutLostWorker: func(n Note) string { return n.Worker + ": " + n.Text },
	AboutProcessStalled: func(n Note) string {
		return fmt.Sprintf("the process stood still for up to %.0f s: it was stopped, or the machine was", n.Worst)
	},
	AboutWorkerStalled: func(n Note) string {
		return fmt.Sprintf("%s: it stood still for %.0f s: its process was stopped, or the machine was", n.Worker, n.Seconds)
	},
	AboutNodeStalled: func(n Note) string {
		return fmt.Sprintf("%s: the process stood still for up to %.1f s: it was stopped, or the machine was, or had no "+
			"processor for it", n.Node, n.Worst/1e3)
	},
	AboutNodeStalledOften: func(n Note) string {
		return fmt.Sprintf("%s: the process stood still again and again, up to %.1f s within %.0f s: it was stopped, or the "+
			"machine was, or had no processor for it", n.Node, n.Worst, n.Planned)
	},
	AboutSnapshotsMissing: func(n Note) string { return fmt.Sprintf("%s: no snapshot for %.0f s", n.Worker, n.Seconds) },
	AboutNoServer: sentence(
		"no server carried the run: it was not watched, and seconds of its curve are missing or later " +
			"than they were; what the run workers executed is recorded",
	),
	AboutClockStep: func(n Note) string {
		paused := ""
		if n.Ms > 0 {
			paused = ", or the machine was paused"
		}
		return fmt.Sprintf(
			"the machine's clock was set %s%s; the run's times, rates and latencies are told by the clock as it "+
				"was at the run's start",
			ClockStep(n.Ms/1e3),
			paused,
		)
	},
	AboutScheduleLag: func(n Note) string {
		return fmt.Sprintf("%s: the generator started operations late, the P99 of a second up to %.0f ms", n.Worker, n.Worst)
	},
	AboutPoolWait: func(n Note) string {
		return fmt.Sprintf(
			"%s: operations waited longer for a free connection than they then took, on average up to %.0f ms "+
				"in a second, for %.0f s: the latency is that of too few connections (workload.concurrent_connections), or the "+
				"rate is more than the target takes",
			n.Worker,
			n.Worst,
			n.Seconds,
		)
	},
	AboutDropped: func(n Note) string {
		return fmt.Sprintf("%s: operations were due and not begun, because max_in_flight were not finished: up to %.0f in a "+
			"second, for %.0f s", n.Worker, n.Worst, n.Seconds)
	},
	AboutNeverBegun: func(n Note) string {
		return fmt.Sprintf(
			"%d of %d operations were due and never begun, because the run ended first: the slowest are not in "+
				"the figures",
			n.Count,
			n.Total,
		)
	},
	AboutErrors: func(n Note) string {
		return fmt.Sprintf("%.3g %% of the operations failed: the figures say how fast errors come, not how fast the table "+
			"works", n.Percent)
	},
	AboutFailing: func(n Note) string {
		if n.Total > 0 {
			weight := "the figures of all operations hardly show it"
			if n.Percent >= 1 {
				weight = fmt.Sprintf("that is %.3g %% of all operations of the measurement, and in all figures", n.Percent)
			}
			return fmt.Sprintf("%d of %d executions of %s (%s) failed within %.0f s: %s", n.Count, n.Total,
				cmp.Or(n.Statement, "a statement"), n.Kind, n.Seconds, weight)
		}
		return fmt.Sprintf(
			"over half of the operations failed for %.0f s, up to %.3g %% in a second: what was measured then "+
				"says how fast errors come, and is in all figures",
			n.Seconds,
			n.Worst,
		)
	},
	AboutNothingMeasured: func(n Note) string {
		const text = "no operation was begun in the measurement: there are no figures"
		switch n.Count {
		case 0:
			return text
		case 1:
			return text + "; the 1 operation that is recorded was begun in the warm-up"
		}
		return fmt.Sprintf("%s; the %d operations that are recorded were begun in the warm-up", text, n.Count)
	},
	AboutNothingRecorded: func(n Note) string {
		return fmt.Sprintf("%d operations were counted while the run went on, and none of them is recorded: there are no "+
			"figures", n.Count)
	},
	AboutServerDown: sentence("The server was down: executions after the last complete part are not recorded"),
	AboutRecordNoRoom: func(n Note) string {
		return fmt.Sprintf("The record of %s may not fit on %s, and its load ends", n.Worker, n.Node)
	},
	AboutPartNotStored: func(n Note) string {
		return fmt.Sprintf("The part %s of the record could not be stored: %s", n.Part, n.Text)
	},
	AboutFiguresFailed: func(n Note) string { return "The figures could not be computed: " + n.Text },
	AboutUnbalanced:    func(n Note) string { return "The accounting does not add up: " + n.Text },
	AboutFallback: func(n Note) string {
		return fmt.Sprintf(
			"two warehouses were measured: what took %.0f s on %s was executed again on its fallback warehouse "+
				"%s, and the longest execution took %.1f s",
			n.Planned,
			n.Warehouse,
			n.Fallback,
			n.Worst,
		)
	},
	AboutBurst: func(n Note) string {
		return slowedDown(n) + ", as an instance with CPU credits does when they are used up: what was measured before and " +
			"after are two machines"
	},
	AboutKindFailed: func(n Note) string {
		text := fmt.Sprintf("all %d operations of kind %s failed", n.Count, n.Kind)
		if n.Text != "" {
			text += "; the most frequent error of the run: " + n.Text
		}
		return text
	},
	AboutMisses: func(n Note) string {
		does := "found"
		if n.Kind.Write() {
			does = "changed"
		}
		text := fmt.Sprintf("%d of %d executions of %s (%s) that succeeded %s no row (%.3g %%): they are faster than those "+
			"that find one", n.Count, n.Total, n.Statement, n.Kind, does, n.Percent)
		if n.Text != "" {
			text += "; " + n.Text
		}
		return text
	},
	AboutFreezes: freezes,
	AboutGeneratorStarved: func(n Note) string {
		waited := ""
		if n.Percent > 0 {
			waited = fmt.Sprintf(" (its threads waited for a processor in %.3g %% of the time in which they could have run)",
				n.Percent)
		}
		return fmt.Sprintf("%s: the generator was late%s: latencies may be too high, %s", n.Node, waited, tooHigh(n))
	},
	AboutConnectionsShort: func(n Note) string {
		why := "they were lost, or take long to open"
		if n.Text != "" {
			why = strings.TrimSuffix(n.Text, ".") // a database's own words
		}
		return fmt.Sprintf("%s: up to %.0f of %d connections were not open, for %.0f s: %s", n.Worker, n.Worst, n.Total,
			max(n.Seconds, 1), why)
	},
	AboutHeldOver: func(n Note) string {
		return fmt.Sprintf(
			"operations begun in the warm-up held their connections for up to %.3g s of the measurement, longer "+
				"than any latency shown, %.3g %% of the load's time: the load was less by that, and they are in no latency",
			n.Seconds,
			n.Percent,
		)
	},
}

// tooHigh lists by how much percentiles may be too high.
func tooHigh(n Note) string {
	var parts []string
	for _, p := range n.Hidden {
		parts = append(parts, fmt.Sprintf("%s by %s of %s", p.Name, LatencyText(p.Ms-p.WouldMs), LatencyText(p.Ms)))
	}
	return strings.Join(parts, ", ")
}

// freezes says how often all operations waited together, and whose that was.
func freezes(n Note) string {
	whose := "the target did not answer: neither a standstill of the generator nor a loss in the network explains it"
	switch n.Cause {
	case StallOfGenerator:
		whose = "the generator itself stood still"
	case StallOfNetwork:
		whose = "the network lost or held packets: the generator's machine retransmitted at least one segment per connection"
	case StallUnknown:
		whose = "whether it was the target, the network or the generator is not known"
	}
	return fmt.Sprintf(
		"no operation was answered on any connection %d times, for up to %.2g s and %.3g s in all (%.3g %% of "+
			"the measurement), and then all were: %s",
		n.Count,
		n.Worst,
		n.Seconds,
		n.Percent,
		whose,
	)
}

func upper(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// StallOfNetwork and StallUnknown are causes of freezes; without one it is the target's.
const (
	StallOfNetwork = "network"
	StallUnknown   = "unknown"
)

// StallOfGenerator is the cause of a NoteNoneAnswered where the load generator itself did not run.
const StallOfGenerator = "generator"

// slowedDown begins what is said of a target that became slower in the middle of a steady load.
func slowedDown(n Note) string {
	const begin = "The target became slower at once and stayed so: "
	if n.New > n.Old { // of an open loop, whose rate says nothing
		return begin + fmt.Sprintf("a P50 of %.4g ms before, %.4g ms after", n.Old, n.New)
	}
	return begin + fmt.Sprintf("%.4g operations a second before, %.4g after", n.Old, n.New)
}

func sentence(text string) func(Note) string { return func(Note) string { return text } }

// by names who has done something; nobody is named where it is not known, or not told.
func by(user string) string {
	if user == "" {
		return ""
	}
	return " by " + user
}

func clockTime(t Time) string { return t.UTC().Format("15:04:05") }

// Count writes how many there are of something: 1 run, 2 runs.
func Count[N int | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// LatencyText writes a latency with three digits, and none behind the point of a long one.
func LatencyText(ms float64) string {
	if ms >= 100 {
		return fmt.Sprintf("%.0f ms", ms)
	}
	return fmt.Sprintf("%.3g ms", ms)
}

// ClockStep says by how many seconds a clock was set, and which way.
func ClockStep(seconds float64) string {
	direction := "forward"
	if seconds < 0 {
		direction, seconds = "back", -seconds
	}
	return fmt.Sprintf("%s by %.1f s", direction, seconds)
}
