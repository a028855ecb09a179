//! A page: navigation, evaluation, and input.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::BrowserError;
use super::pipe::DevToolsPipe;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    Light,
    Dark,
}

/// Problems that a page reported, and its requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageLog {
    /// Errors and warnings of the console, exceptions, and policy violations.
    pub complaints: Vec<String>,
    pub requests: Vec<String>,
}

pub struct BrowserPage<'a> {
    pipe: &'a mut DevToolsPipe,
    session: String,
}

impl<'a> BrowserPage<'a> {
    pub(crate) fn new(
        pipe: &'a mut DevToolsPipe,
        session: String,
        width: u32,
        height: u32,
    ) -> Result<Self, BrowserError> {
        let mut page = Self { pipe, session };
        for domain in ["Page", "Runtime", "Log", "Network", "Accessibility"] {
            page.call(&format!("{domain}.enable"), &json!({}))?;
        }
        let size =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        page.call("Emulation.setDeviceMetricsOverride", &size)?;
        Ok(page)
    }

    pub fn call(&mut self, method: &str, params: &Value) -> Result<Value, BrowserError> {
        self.pipe.call(Some(&self.session), method, params)
    }

    pub fn go_offline(&mut self) -> Result<(), BrowserError> {
        let none = json!({
            "offline": true, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0,
        });
        self.call("Network.emulateNetworkConditions", &none).map(|_| ())
    }

    pub fn prefer(&mut self, theme: Theme) -> Result<(), BrowserError> {
        let value = if theme == Theme::Dark { "dark" } else { "light" };
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": value }] });
        self.call("Emulation.setEmulatedMedia", &media).map(|_| ())
    }

    /// Opens an address and waits until it is loaded.
    pub fn open(&mut self, address: &str) -> Result<(), BrowserError> {
        let answer = self.call("Page.navigate", &json!({ "url": address }))?;
        if let Some(said) = answer["errorText"].as_str() {
            let (what, said) = (address.to_owned(), said.to_owned());
            return Err(BrowserError::Refused { what, said });
        }
        self.pipe.wait("Page.loadEventFired")
    }

    /// Returns the value of an expression; waits for promises.
    pub fn eval(&mut self, expression: &str) -> Result<Value, BrowserError> {
        let params =
            json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let mut answer = self.call("Runtime.evaluate", &params)?;
        if let Some(problem) = answer.get("exceptionDetails") {
            let said = problem["exception"]["description"].to_string();
            return Err(BrowserError::Refused { what: expression.to_owned(), said });
        }
        Ok(answer["result"]["value"].take())
    }

    /// Waits until an expression is true. While one page is being replaced by the next, the
    /// expression cannot be evaluated; that is an error only if it persists.
    pub fn until(&mut self, expression: &str) -> Result<(), BrowserError> {
        let begun = Instant::now();
        loop {
            let answer = self.eval(&format!("Boolean({expression})"));
            let late = begun.elapsed() > Duration::from_secs(120);
            match answer {
                Ok(Value::Bool(true)) => return Ok(()),
                Ok(_) if late => {
                    let (what, waited) = (expression.to_owned(), begun.elapsed());
                    return Err(BrowserError::Silent { what, waited });
                }
                Ok(_) => {}
                Err(BrowserError::Refused { .. }) if !late => {}
                Err(error) => return Err(error),
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Moves the mouse to a fraction of the width and height of the selected element.
    pub fn hover(&mut self, selector: &str, x: f64, y: f64) -> Result<(), BrowserError> {
        let (x, y) = self.place(selector, x, y)?;
        self.mouse("mouseMoved", x, y, 0)
    }

    /// Drags the mouse from one fraction of an element's width to another.
    pub fn drag(&mut self, selector: &str, from: f64, to: f64) -> Result<(), BrowserError> {
        let (start, y) = self.place(selector, from, 0.5)?;
        let (end, _) = self.place(selector, to, 0.5)?;
        self.mouse("mouseMoved", start, y, 0)?;
        self.mouse("mousePressed", start, y, 1)?;
        self.mouse("mouseMoved", (start + end) / 2.0, y, 1)?;
        self.mouse("mouseMoved", end, y, 1)?;
        self.mouse("mouseReleased", end, y, 0)
    }

    fn place(&mut self, selector: &str, x: f64, y: f64) -> Result<(f64, f64), BrowserError> {
        let selector = Value::from(selector);
        let found = self.eval(&format!(
            "(() => {{ const e = document.querySelector({selector}); \
             e.scrollIntoView({{ block: 'center', behavior: 'instant' }}); \
             const b = e.getBoundingClientRect(); \
             return [b.x + b.width * {x}, b.y + b.height * {y}]; }})()"
        ))?;
        let number = |at: usize| found[at].as_f64().unwrap_or_default();
        Ok((number(0), number(1)))
    }

    fn mouse(&mut self, kind: &str, x: f64, y: f64, buttons: u32) -> Result<(), BrowserError> {
        let button = if kind == "mouseMoved" { "none" } else { "left" };
        let event = json!({
            "type": kind, "x": x, "y": y, "button": button, "buttons": buttons, "clickCount": 1,
        });
        self.call("Input.dispatchMouseEvent", &event).map(|_| ())
    }

    /// Presses a key, such as `ArrowRight`, `Tab` or `+`.
    pub fn press(&mut self, key: &str) -> Result<(), BrowserError> {
        let code = match key {
            "Tab" => 9,
            "Enter" => 13,
            "Escape" => 27,
            "End" => 35,
            "Home" => 36,
            "ArrowLeft" => 37,
            "ArrowRight" => 39,
            _ => 0,
        };
        for kind in ["keyDown", "keyUp"] {
            let mut event = json!({ "type": kind, "key": key, "windowsVirtualKeyCode": code });
            if kind == "keyDown" && key == "Enter" {
                event["text"] = json!("\r");
            }
            self.call("Input.dispatchKeyEvent", &event)?;
        }
        Ok(())
    }

    /// Takes a screenshot and returns it as a PNG in base64.
    pub fn picture(&mut self) -> Result<String, BrowserError> {
        let mut shot = self.call("Page.captureScreenshot", &json!({ "format": "png" }))?;
        Ok(shot["data"].take().as_str().unwrap_or_default().to_owned())
    }

    pub fn happened(&mut self) -> PageLog {
        let mut happened = PageLog::default();
        for event in self.pipe.drain() {
            let params = &event["params"];
            match event["method"].as_str().unwrap_or_default() {
                "Runtime.exceptionThrown" => {
                    let details = &params["exceptionDetails"];
                    happened.complaints.push(details.to_string());
                }
                "Runtime.consoleAPICalled" if params["type"] != "log" => {
                    happened.complaints.push(params["args"].to_string());
                }
                "Log.entryAdded" => happened.complaints.push(params["entry"]["text"].to_string()),
                "Network.requestWillBeSent" => {
                    let address = params["request"]["url"].as_str().unwrap_or_default();
                    happened.requests.push(address.to_owned());
                }
                _ => {}
            }
        }
        happened
    }
}
