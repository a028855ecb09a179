//! The filters of a page, from its address.

use doctor::OriginKind;
use report::serve::PageAddress;

const DEFAULT_DAYS: u32 = 30;
/// Ten years; PostgreSQL's intervals support more.
const MAX_DAYS: u32 = 3660;
const MAX_PAGE: u32 = 100_000;

/// The filters in an address; all links of a page keep them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PageFilters {
    /// A host's name; `*` matches any text.
    pub host: Option<String>,
    /// A storage's name; `*` matches any text.
    pub storage: Option<String>,
    pub origin: Option<String>,
    /// Age limit of changes and runs, in days.
    pub days: u32,
    /// Page number, from 1.
    pub page: u32,
}

impl PageFilters {
    /// Parses an address; the error is a message for the user.
    pub(crate) fn from_address(address: &PageAddress) -> Result<Self, String> {
        let number = |name: &str, default: u32, max: u32| match address.value(name) {
            None => Ok(default),
            Some(text) => match text.parse() {
                Ok(number) if (1..=max).contains(&number) => Ok(number),
                _ => Err(format!("{name} is {text}, not a number from 1 to {max}")),
            },
        };
        let origin = address.value("origin");
        if let Some(origin) = origin.as_deref().filter(|word| !OriginKind::WORDS.contains(word)) {
            let words = OriginKind::WORDS.join(", ");
            return Err(format!("there is no origin {origin}; there are {words}"));
        }
        Ok(Self {
            host: address.value("host"),
            storage: address.value("storage"),
            origin,
            days: number("days", DEFAULT_DAYS, MAX_DAYS)?,
            page: number("page", 1, MAX_PAGE)?,
        })
    }

    /// Returns the number of rows before this page.
    pub(crate) fn skip(&self, rows_per_page: u32) -> u32 {
        (self.page - 1) * rows_per_page
    }

    /// Returns the address of another page with the same filters.
    pub(crate) fn at(&self, path: &str, page: u32) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        let texts = [("host", &self.host), ("storage", &self.storage), ("origin", &self.origin)];
        for (name, value) in texts {
            if let Some(value) = value {
                query.append_pair(name, value);
            }
        }
        if self.days != DEFAULT_DAYS {
            query.append_pair("days", &self.days.to_string());
        }
        if page > 1 {
            query.append_pair("page", &page.to_string());
        }
        match query.finish() {
            query if query.is_empty() => path.to_owned(),
            query => format!("{path}?{query}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_to_a_page_leads_back_to_its_filters() {
        let address = "/changes?host=a%26b*&storage=%2Fsrv&origin=udev&days=7&page=3";
        let filters = PageFilters::from_address(&PageAddress::new(address)).unwrap();
        assert_eq!((filters.host.as_deref(), filters.skip(50)), (Some("a&b*"), 100));
        let link = PageAddress::new(&filters.at("/changes", 3));
        assert_eq!(PageFilters::from_address(&link).unwrap(), filters);
        let none = PageFilters::from_address(&PageAddress::new("/?host=&days=")).unwrap();
        assert_eq!(none.at("/", 1), "/");
    }

    #[test]
    fn an_address_that_cannot_be_is_refused_with_a_reason() {
        for (address, why) in [
            ("/?days=x", "days is x"),
            ("/?days=0", "from 1 to"),
            ("/?page=-1", "page is -1"),
            ("/?page=99999999999", "from 1 to"),
            ("/?origin=nobody", "there are"),
        ] {
            let said = PageFilters::from_address(&PageAddress::new(address)).unwrap_err();
            assert!(said.contains(why), "{address}: {said}");
        }
    }
}
