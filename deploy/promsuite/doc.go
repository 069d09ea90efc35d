// Package promsuite tests the engine of PromQL against Prometheus: with its own suite, and with expressions from a
// generator that a real TSDB and its unchanged engine answer too. A module of its own: a TSDB brings clients of several
// clouds and of Kubernetes, which neither the program nor its tests should have to compile.
package promsuite
