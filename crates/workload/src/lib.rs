//! Access patterns as declarations: what is read, by whom, in which order.
