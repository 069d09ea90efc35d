package report

import "github.com/loadstone-db/loadstone/engine"

func summary() *engine.Summary {
	reason := "Guardrail triggered: <generator> CPU \x01 & more"
	return &engine.Summary{
		RunID: "r", RunName: "orders & \"lines\"", Status: engine.StatusCompleted, CancellationReason: &reason,
		Validity: engine.VerdictValid,
		Figures: engine.Figures{
			Operations: 12345, QPS: new(617.25), DurationSeconds: 20,
			LatencyMs: &engine.LatencyMs{P50: 0.41, P95: 10.2, P99: 123, Max: 20000},
			ByKind:    map[engine.Kind]*engine.KindFigures{engine.KindInsert: {Count: 5, LatencyMs: &engine.LatencyMs{P50: 1}}},
			Errors: engine.ErrorFigures{Count: 1, ByClass: map[engine.ErrorClass]int64{engine.ErrClassTimeout: 1},
				Top: []engine.ErrorGroup{{ExecutionError: engine.ExecutionError{Class: engine.ErrClassTimeout,
					Message: "canceled\x1b[31m\nby the server"}, Count: 1}}},
			Accounting: engine.Accounting{Scheduled: 3, Started: 3, Succeeded: 2, Failed: 1, Recorded: 3, Balanced: true},
		},
		Thresholds: []engine.ThresholdResult{{Threshold: "p95_ms < 20", Passed: true}},
	}
}

// ofStandIn is a summary with a cost, of a stand-in, an emulator or neither.
func ofStandIn(simulated, emulated bool) *engine.Summary {
	s := summary()
	s.CancellationReason = nil
	s.Simulated, s.Emulated = simulated, emulated
	s.Verdict = s.VerdictText()
	million := 0.5
	s.Cost = &engine.Cost{Warehouse: "WH", WarehouseType: "STANDARD", WarehouseSize: "X-Small", Clusters: 1,
		CreditsPerHour: 1, Credits: 0.0056, CreditPrice: 3,
		Currency: "USD", Price: 0.0167, PricePerMillion: &million, PriceList: "list"}
	return s
}
