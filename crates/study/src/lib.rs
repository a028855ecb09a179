//! Studies: plan, run, store, analyse, recommend.
