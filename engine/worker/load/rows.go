// This part knows which rows of the target were never made, so that operations look
// for those that were: a workload decides before it can know what became of its INSERTs.

package load
