theme();
document.documentElement.dataset.ready = "yes";
