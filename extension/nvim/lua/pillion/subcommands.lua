-- The subcommands of :Pillion: their functions, their arguments and their completion.
local M = {}

---@class pillion.Subcommand
---@field run fun(args: string[], raw: table)
---@field fits? fun(args: string[]): boolean whether these words are valid arguments; without it no arguments are allowed
---@field complete? fun(lead: string, before: string[]): string[]
---@field help string

local function session()
  return require("pillion.session").get()
end

local function words(list)
  return function(args)
    return #args == 0 or (#args == 1 and vim.tbl_contains(list, args[1]))
  end
end

local function from(list)
  return function(lead)
    return vim.tbl_filter(function(w)
      return w:sub(1, #lead) == lead
    end, list)
  end
end

local function any()
  return true
end

local function tell(level, text)
  require("pillion.log").tell(level, text)
end

local actions = function()
  return require("pillion.actions")
end

---@type table<string, pillion.Subcommand>
M.subcommands = {}
local sub = M.subcommands

local function choice(name, help, list, run)
  sub[name] = { help = help, run = run, fits = words(list), complete = from(list) }
end

choice("chat", "open the chat and type a prompt; or: open, close, toggle, new", { "open", "close", "toggle", "new" }, function(args)
  local chat = require("pillion.chat")
  if args[1] == "close" then
    chat.close()
  elseif args[1] == "toggle" then
    chat.toggle()
  elseif args[1] == "new" then
    require("pillion.session").create()
    chat.open(true)
  else
    chat.open(true)
  end
end)

sub.new = {
  help = "start a new session",
  run = function()
    require("pillion.session").create()
    require("pillion.chat").open(true)
  end,
}

sub.stop = {
  help = "stop the running turn",
  run = function()
    local s = require("pillion.session").current
    if not s or not s:busy() then
      return tell("info", "no turn is running")
    end
    s:cancel()
  end,
}

sub.sessions = {
  help = "open a stored session of this folder (all: of any folder)",
  fits = words({ "all" }),
  complete = from({ "all" }),
  run = function(args)
    actions().sessions(args[1] == "all")
  end,
}

sub.resume = {
  help = "continue the last session of this folder, or the one with this id",
  fits = function(args)
    return #args == 0 or (#args == 1 and args[1]:match("^[%w%-_]+$") ~= nil and #args[1] >= 16)
  end,
  run = function(args)
    actions().resume(args[1])
  end,
}

choice("review", "review the proposed hunks; next, prev, list, split, unified, reset", { "next", "prev", "list", "split", "unified", "reset", "files" }, function(args)
  require("pillion.deciding").review(args[1])
end)

choice("accept", "accept the hunk at the cursor, the hunks of the file or all; or allow the pending request", { "hunk", "file", "all", "always" }, function(args)
  require("pillion.deciding").decide("accept", args)
end)

sub.reject = {
  help = "reject the hunk at the cursor, the hunks of the file or all; or the pending request, with a reason",
  fits = function(args)
    return #args == 0 or vim.tbl_contains({ "hunk", "file", "all" }, args[1]) or require("pillion.approval").first() ~= nil
  end,
  complete = from({ "hunk", "file", "all" }),
  run = function(args)
    require("pillion.deciding").decide("reject", args)
  end,
}

sub.edit = {
  help = "edit the proposed lines of the hunk at the cursor",
  run = function()
    require("pillion.deciding").edit()
  end,
}

sub.comment = {
  help = "comment on the hunk at the cursor",
  fits = function(args)
    return #args == 0 or require("pillion.approval").first({ review = true }) ~= nil
  end,
  run = function(args)
    require("pillion.deciding").comment(table.concat(args, " "))
  end,
}

sub.finding = {
  help = "have the current finding of a review fixed, from the quickfix list that /review made",
  run = function()
    require("pillion.quickfix").fix()
  end,
}

sub.answer = {
  help = "answer the pending request from a list",
  run = function()
    local ask = require("pillion.approval").first()
    if not ask then
      return tell("info", "no request is pending")
    end
    require("pillion.approval").pick(ask)
  end,
}

choice("checkpoint", "restore the state before a prompt", { "list", "undo", "redo" }, function(args)
  local c = require("pillion.checkpoints")
  if args[1] == "undo" or args[1] == "redo" then
    return c[args[1]](session())
  end
  c.pick(session())
end)

choice("undo", "undo the last prompt and its changes; hunk, file or all: only changes of the last turn", { "hunk", "file", "all" }, function(args)
  if args[1] then
    return require("pillion.follow").settle(session(), "undo", args[1])
  end
  require("pillion.checkpoints").undo(session())
end)

sub.redo = {
  help = "redo what was undone",
  run = function()
    require("pillion.checkpoints").redo(session())
  end,
}

choice("keep", "keep changed hunks: hunk (default), file or all", { "hunk", "file", "all" }, function(args)
  require("pillion.follow").settle(session(), "keep", args[1] or "hunk")
end)

sub.changes = {
  help = "show what the last turn changed: signs and the quickfix list",
  run = function()
    require("pillion.follow").refresh(session(), function(list)
      if #list == 0 then
        return tell("info", "no files were changed")
      end
      require("pillion.quickfix").files(list)
    end)
  end,
}

--- Defines a subcommand that switches to a review style and back to preview.
--- @param name string the style, and the option that holds it
--- @param summary string
---- @param told string the message when it is turned on
local function style(name, summary, told)
  choice(name, summary, { "on", "off" }, function(args)
    local o = require("pillion.config").options
    local on = not o[name]
    if args[1] then
      on = args[1] == "on"
    end
    -- Only one can be on: follow accepts every proposal when it arrives, so it would land a draft without a review.
    o.follow, o.draft = false, false
    o[name] = on
    local s = session()
    if s:option("review") then
      s:set_option("review", on and name or "preview")
    end
    tell("info", on and told or "preview: every edit is proposed first")
    s:status()
  end)
end

style("follow", "write edits immediately and review them afterwards", "follow: edits are written immediately; review them with :Pillion keep and :Pillion undo hunk")
style("draft", "let the agent work in a copy, and decide once at the end of its turn", "draft: the agent works in a copy, commands included; you decide on all of it when its turn ends")

choice("auto", "run commands whose effects stay in the project without asking", { "on", "off" }, function(args)
  local s = session()
  local o = s:option("permission")
  if not o then
    return tell("warn", "this Pillion cannot ask about commands by their effects; update it")
  end
  local on = args[1] == "on" or (args[1] == nil and o.currentValue ~= "auto")
  s:set_option("permission", on and "auto" or "ask")
  tell("info", on and "auto: commands run in the sandbox without asking where their effects stay in the project and can be undone" or "ask: every command that your rules do not allow is asked about")
end)

choice("trust", "trust the project's own configuration; revoke: no longer", { "revoke" }, function(args)
  actions().trust(args[1] == "revoke")
end)

for name, option in pairs({ model = "model", mode = "mode", thinking = "thought_level" }) do
  sub[name] = {
    help = "choose the " .. name,
    fits = function(args)
      return #args == 0 or (#args == 1 and (args[1]:find("/", 1, true) ~= nil or actions().values(option, args[1])))
    end,
    complete = function(lead)
      return actions().value_list(option, lead)
    end,
    run = function(args)
      actions().option(option, args[1])
    end,
  }
end

sub.add = {
  help = "add files (default: the range or the current file) to the next prompt",
  fits = function(args)
    for _, a in ipairs(args) do
      if a:sub(1, 1) ~= "@" and #vim.fn.glob(vim.fn.expand(a), true, true) == 0 then
        return false
      end
    end
    return true
  end,
  complete = function(lead)
    local out = from({ "@buffer", "@selection", "@diagnostics", "@quickfix" })(lead)
    return vim.list_extend(out, lead:sub(1, 1) == "@" and {} or vim.fn.getcompletion(lead, "file"))
  end,
  run = function(args, raw)
    actions().add(args, raw)
  end,
}

sub.queue = {
  help = "queue a prompt behind the running turn; without one: show the queue; resume: continue a held queue",
  fits = any,
  run = function(args)
    if #args == 0 then
      return actions().queue()
    elseif #args == 1 and args[1] == "resume" then
      return session():call("_pillion/session/queue", { resume = true }, function(err)
        if err then
          tell("error", err.message)
        end
      end)
    end
    require("pillion.chat").prompt(table.concat(args, " "), nil, "queue")
  end,
}

sub.steer = {
  help = "send a message to the running turn",
  fits = function(args)
    return #args > 0
  end,
  run = function(args)
    require("pillion.chat").prompt(table.concat(args, " "), nil, "steer")
  end,
}

sub.ask = {
  help = "send a prompt that begins like a subcommand",
  fits = function(args)
    return #args > 0
  end,
  run = function(args, raw)
    require("pillion.commands").ask(table.concat(args, " "), raw)
  end,
}

sub.export = {
  help = "write the conversation to a file (.md or .json)",
  fits = function(args)
    return #args <= 1
  end,
  complete = function(lead)
    return vim.fn.getcompletion(lead, "file")
  end,
  run = function(args)
    local v = require("pillion.chat").view()
    v:export(args[1] and vim.fn.fnamemodify(args[1], ":p") or v:export_path())
  end,
}

sub.rename = {
  help = "rename the session",
  fits = function(args)
    return #args > 0 and session().id ~= nil
  end,
  run = function(args)
    local s, title = session(), table.concat(args, " ")
    s:call("_pillion/session/rename", { title = title }, function(err)
      if err then
        return tell("error", err.message)
      end
      s.title = title
      s:status()
    end)
  end,
}

sub.fork = {
  help = "copy the session, to try something else",
  run = function()
    actions().fork()
  end,
}

sub.permissions = {
  help = "list the permission rules; revoke a grant",
  run = function()
    actions().permissions()
  end,
}

sub.log = {
  help = "open the log",
  run = function()
    require("pillion.log").open()
  end,
}

sub.restart = {
  help = "restart the sidecar",
  run = function()
    require("pillion.process").restart()
  end,
}

M.from = from

return M
