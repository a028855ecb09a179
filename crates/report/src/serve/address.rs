/// The address of a page on this server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageAddress {
    path: String,
    query: String,
}

impl PageAddress {
    /// Parses `/path?name=value`, the target of a request.
    pub fn new(target: &str) -> Self {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        Self { path: path.to_owned(), query: query.to_owned() }
    }

    /// Returns the parts of the path.
    pub fn parts(&self) -> Vec<&str> {
        self.path.split('/').filter(|part| !part.is_empty()).collect()
    }

    /// Returns the decoded values of the query with this name, without the empty values that a form
    /// sends for empty fields.
    pub fn values(&self, name: &str) -> Vec<String> {
        form_urlencoded::parse(self.query.as_bytes())
            .filter(|(key, value)| key == name && !value.is_empty())
            .map(|(_, value)| value.into_owned())
            .collect()
    }

    /// Returns the first value of the query with this name.
    pub fn value(&self, name: &str) -> Option<String> {
        self.values(name).into_iter().next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_decoded_and_empty_values_are_absent() {
        let address = PageAddress::new("/runs//x?host=web%2A+1&days=&run=a&run=b&host=other");
        assert_eq!(address.parts(), ["runs", "x"]);
        assert_eq!(address.value("host").as_deref(), Some("web* 1"));
        assert_eq!(address.value("days"), None);
        assert_eq!(address.values("run"), ["a", "b"]);
        assert_eq!(PageAddress::new("/").parts(), Vec::<&str>::new());
    }
}
