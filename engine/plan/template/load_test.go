package template

import (
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
)

func TestStagesSayHowLongTheRunIs(t *testing.T) {
	s, err := Parse([]byte(strings.Replace(small, "plugin: mix", `plugin: mix, load_mode: QPS, stages: [
  {duration_seconds: 30, target_qps: 1500}, {duration_seconds: 60.5, target_qps: 3000, ramp: step}]`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	w := s.Workload
	if w.DurationSeconds != 90.5 || w.TargetQPS != nil || w.StartRate() != 1500 || w.ConcurrentConnections != 30 ||
		w.Stages[0].Ramp != engine.RampLinear || w.Stages[1].Ramp != engine.RampStep || w.MaxInFlight != 10000 {
		t.Errorf("%+v", w)
	}
	// What was completed is complete.
	again, err := Complete(s)
	if err != nil || again.Workload.DurationSeconds != 90.5 || len(again.Workload.Stages) != 2 {
		t.Errorf("%+v, %v", again.Workload, err)
	}
}

func TestStagesOfConnectionsNeedRoom(t *testing.T) {
	staged := strings.Replace(small, "plugin: mix", "plugin: mix, stages: [{duration_seconds: 10, connections: 200}]", 1)
	s, err := Parse([]byte(staged))
	if err != nil || s.Scaling.PerWorkerCapacity != 200 || s.Workload.DurationSeconds != 10 {
		t.Errorf("%+v, %v", s.Scaling, err)
	}
	if _, err = Parse([]byte(staged + "scaling: {per_worker_capacity: 100}\n")); err == nil {
		t.Error("200 connections fit on one run worker of 100")
	}
}
